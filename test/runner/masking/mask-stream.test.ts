import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createMask } from "../../../src/runner/masking/mask.ts";
import { hexSecret, masked } from "./masked.ts";

test("a line that holds no beginning of a secret is told at once, and so is what follows a whole secret", () => {
  const stream = createMask([hexSecret]).stream();
  assert.equal(stream.push(Buffer.from("no line end yet")).toString(), "no line end yet");
  assert.equal(stream.push(Buffer.from("\nthe secret begins 7d1f")).toString(), "\nthe secret begins ");
  assert.equal(stream.push(Buffer.from("\n")).toString(), "7d1f\n");
  assert.equal(stream.push(Buffer.from(hexSecret)).toString(), "***");
  assert.equal(stream.push(Buffer.from("7d1f0c5e")).toString(), "");
  assert.equal(stream.finish().toString(), "7d1f0c5e");
});

test("never more is held back than the longest spelling, less one byte", () => {
  const secret = "a".repeat(50);
  const property = fc.property(fc.string({ unit: fc.constantFrom("a", "%", "6", "1", "YWFh") }), (text) => {
    const bytes = Buffer.from(text.repeat(20));
    const told = createMask([secret]).stream().push(bytes);
    assert.ok(bytes.length < 300 || told.length > 0);
    const stream = createMask([secret]).stream();
    for (const byte of bytes) stream.push(Buffer.of(byte));
    assert.ok(stream.finish().length < 50 * 3);
  });
  fc.assert(property, { numRuns: 200 });
});

test("what only looks like the beginning of an encoded secret is let go after some blank bytes", () => {
  const stream = createMask([hexSecret]).stream();
  const begun = Buffer.from(hexSecret).toString("hex").slice(0, 40);
  assert.equal(stream.push(Buffer.from(begun)).length, 0);
  assert.equal(stream.push(Buffer.from(" ".repeat(16))).length, 0);
  assert.equal(stream.push(Buffer.from(" ")).toString(), `${begun}${" ".repeat(17)}`);
});

test("a stream that goes on where another broke off masks the rest of a secret, the other having told its beginning to nobody", () => {
  const mask = createMask([hexSecret]);
  const encoded = Buffer.from(hexSecret).toString("hex");
  for (const spelling of [hexSecret, encoded]) {
    for (let at = 1; at <= spelling.length - 6; at += 1) {
      const before = mask.stream().push(Buffer.from(`x ${spelling.slice(0, at)}`));
      assert.equal(before.toString(), "x ");
      const resumed = mask.stream({ isResumed: true });
      assert.equal(masked(resumed, [Buffer.from(`${spelling.slice(at)} y`)]), "*** y");
    }
  }
  assert.equal(masked(mask.stream({ isResumed: true }), [Buffer.from("a new line\n")]), "a new line\n");
});
