import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createRedactor } from "../../src/redaction/redactor.ts";
import { hexSecret, redacted } from "./redacted.ts";

test("a line without a beginning of a secret, and output after a secret, pass at once", () => {
  const stream = createRedactor([hexSecret]).stream();
  assert.equal(stream.push(Buffer.from("no line end yet")).toString(), "no line end yet");
  assert.equal(stream.push(Buffer.from("\nthe secret begins 7d1f")).toString(), "\nthe secret begins ");
  assert.equal(stream.push(Buffer.from("\n")).toString(), "7d1f\n");
  assert.equal(stream.push(Buffer.from(hexSecret)).toString(), "***");
  assert.equal(stream.push(Buffer.from("7d1f0c5e")).toString(), "");
  assert.equal(stream.finish().toString(), "7d1f0c5e");
});

test("at most the longest encoding less one byte is held back", () => {
  const secret = "a".repeat(50);
  const property = fc.property(fc.string({ unit: fc.constantFrom("a", "b", "YWFh") }), (text) => {
    const bytes = Buffer.from(text.repeat(20));
    const output = createRedactor([secret]).stream().push(bytes);
    assert.ok(bytes.length < 300 || output.length > 0);
    const stream = createRedactor([secret]).stream();
    for (const byte of bytes) stream.push(Buffer.of(byte));
    assert.ok(stream.finish().length < 50 * 3);
  });
  fc.assert(property, { numRuns: 200 });
});

test("a resumed stream redacts the rest of a secret whose beginning was held back", () => {
  const redactor = createRedactor([hexSecret]);
  const encoded = Buffer.from(hexSecret).toString("base64").slice(0, -3);
  for (const encoding of [hexSecret, encoded]) {
    for (let at = 1; at <= encoding.length - 6; at += 1) {
      const before = redactor.stream().push(Buffer.from(`x ${encoding.slice(0, at)}`));
      assert.match(before.toString(), /^x (?:\*\*\*)?$/);
      const resumed = redactor.stream({ isResumed: true });
      assert.equal(redacted(resumed, [Buffer.from(`${encoding.slice(at)} y`)]), "*** y");
    }
  }
  assert.equal(redacted(redactor.stream({ isResumed: true }), [Buffer.from("a new line\n")]), "a new line\n");
});
