import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRedactor } from "../../src/redaction/redactor.ts";
import { encodings, redacted } from "./redacted.ts";

test("whatever the secrets and wherever writes end, what is told is what searching the whole text gives", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "-"), minLength: 6, maxLength: 9 });
  const property = fc.property(
    fc.array(word, { minLength: 1, maxLength: 4 }),
    fc.array(fc.oneof(fc.string({ unit: fc.constantFrom("a", "b", "-", "\n"), maxLength: 12 }), fc.nat(7))),
    fc.array(fc.nat(60)),
    (words, parts, cuts) => {
      // One that stands within another is found where the other goes no further.
      const secrets = words.flatMap((one) => [one, one.slice(1, -1)]);
      const text = parts.map((part) => (typeof part === "number" ? (secrets[part] ?? "") : part)).join("");
      const bytes = Buffer.from(text);
      const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((one, other) => one - other)];
      const pieces = edges.map((from, index) => bytes.subarray(from, edges[index + 1]));
      assert.equal(redacted(createRedactor(secrets).stream(), pieces), searched(text, secrets));
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

test("in any text with any number of secrets, cut anywhere, no encoding of them is told", () => {
  const secret = fc.string({ unit: "binary-ascii", minLength: 9, maxLength: 40 }).filter(isPlainEnough);
  const property = fc.property(
    fc.array(secret, { minLength: 1, maxLength: 3 }),
    fc.array(fc.oneof(fc.string(), fc.tuple(fc.nat(2), fc.nat(14)))),
    fc.array(fc.nat(400)),
    (secrets, parts, cuts) => {
      const spelled = secrets.map((one) => [
        ...Object.values(encodings(one)),
        Buffer.from(one).toString("base64"),
      ]);
      const text = parts
        .map((part) => (typeof part === "string" ? part : (spelled[part[0]]?.[part[1]] ?? "")))
        .join(" ");
      const bytes = Buffer.from(text);
      const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((one, other) => one - other)];
      const pieces = edges.map((from, index) => bytes.subarray(from, edges[index + 1]));
      const told = redacted(createRedactor(secrets).stream(), pieces);
      for (const encoding of spelled.flat()) assert.ok(!told.includes(encoding), `${encoding} in ${told}`);
    },
  );
  fc.assert(property, { numRuns: 500 });
});

/** The plain way: all occurrences are marked, and each run of those that overlap becomes stars. */
function searched(text: string, secrets: readonly string[]): string {
  const ranges = secrets.flatMap((secret) =>
    Array.from(text, (_, from) => from)
      .filter((from) => text.startsWith(secret, from))
      .map((start) => ({ start, end: start + secret.length })),
  );
  let told = "";
  let toldTo = 0;
  for (const { start, end } of ranges.sort((one, other) => one.start - other.start)) {
    if (start >= toldTo) told += `${text.slice(toldTo, start)}***`;
    toldTo = Math.max(toldTo, end);
  }
  return told + text.slice(toldTo);
}

/** Stars and blanks alone are what redaction itself leaves. */
function isPlainEnough(text: string): boolean {
  return /[a-zA-Z]{3}/.test(text) && text.trim() === text && !text.includes("***");
}
