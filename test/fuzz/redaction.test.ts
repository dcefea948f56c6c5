import assert from "node:assert/strict";
import fc from "fast-check";
import { createRedactor } from "../../src/redaction.ts";
import { encodings, redacted } from "../harness/secrecy.ts";
import { edgesOf, fuzz } from "./fuzz.ts";

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
      const bytes = Buffer.from(text);
      const pieces = edgesOf(bytes.length, cuts).map((at, index, edges) =>
        bytes.subarray(at, edges[index + 1]),
      );
      const left = redacted(createRedactor(secrets), pieces);
      for (const encoding of encoded.flat()) assert.ok(!left.includes(encoding), `${encoding} in ${left}`);
    },
  ),
  500,
);

/** Redaction itself leaves only stars and blanks. */
function isPlainEnough(text: string): boolean {
  return /^[^\r\n]*[a-zA-Z]{3}[^\r\n]*$/.test(text) && text.trim() === text && !text.includes("***");
}
