import assert from "node:assert/strict";
import fc from "fast-check";
import { createRedactor, secretsInVariable } from "../../src/redaction.ts";
import { encodings, redacted } from "../harness/secrecy.ts";
import { fuzz } from "./fuzz.ts";

const secret = fc.string({ unit: "binary-ascii", minLength: 9, maxLength: 40 }).filter(isPlainEnough);

fuzz(
  "no known form of a secret is left in any text, however writes are split",
  fc.property(
    fc.array(secret, { minLength: 1, maxLength: 3 }),
    fc.array(fc.oneof(fc.string(), fc.tuple(fc.nat(2), fc.nat(4)))),
    fc.array(fc.nat(400)),
    (secrets, parts, cuts) => {
      const encoded = secrets.map((one) => [
        ...Object.values(encodings(one)),
        Buffer.from(one).toString("base64"),
      ]);
      const text = parts
        .map((part) => (typeof part === "string" ? part : (encoded[part[0]]?.[part[1]] ?? "")))
        .join(" ");
      const left = redacted(createRedactor(secrets), cut(text, cuts));
      for (const encoding of encoded.flat()) assert.ok(!left.includes(encoding), `${encoding} in ${left}`);
    },
  ),
  500,
);

fuzz(
  "no variable makes the search for secrets throw, or return an empty one",
  fc.property(
    fc.string(),
    fc.oneof(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc.json(),
      fc
        .array(
          fc.constantFrom("=", ";", ",", " ", "'", '"', "\\", "@", ":", "//", "?", "&", "key", "pwd", "a"),
        )
        .map((parts) => parts.join("")),
    ),
    (name, value) => {
      for (const found of secretsInVariable(name, value)) assert.notEqual(found, "");
    },
  ),
  5_000,
);

function cut(text: string, cuts: readonly number[]): readonly Buffer[] {
  const bytes = Buffer.from(text);
  const edges = [0, ...cuts.filter((at) => at < bytes.length).sort((one, other) => one - other)];
  return edges.map((from, index) => bytes.subarray(from, edges[index + 1]));
}

/** Redaction itself leaves only stars and blanks. */
function isPlainEnough(text: string): boolean {
  return /^[^\r\n]*[a-zA-Z]{3}[^\r\n]*$/.test(text) && text.trim() === text && !text.includes("***");
}
