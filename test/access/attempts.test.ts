import assert from "node:assert/strict";
import { test } from "node:test";
import { createAttempts } from "../../src/access/attempts.ts";

test("after ten wrong attempts in a minute an address waits, and no other does", () => {
  const attempts = createAttempts();
  for (let count = 0; count < 10; count += 1) {
    assert.equal(attempts.waitSeconds("a", 1_000), 0);
    attempts.noteFailure("a", 1_000);
  }
  assert.equal(attempts.waitSeconds("a", 31_000), 30);
  assert.equal(attempts.waitSeconds("b", 31_000), 0);
  assert.equal(attempts.waitSeconds("a", 61_000), 0);
});

test("with a thousand addresses, all others count as one", () => {
  const attempts = createAttempts();
  for (let number = 0; number < 1_010; number += 1) attempts.noteFailure(`address ${number}`, 1_000);
  assert.ok(attempts.waitSeconds("one more", 1_000) > 0);
  assert.equal(attempts.waitSeconds("one more", 62_000), 0);
});
