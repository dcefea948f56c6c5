import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { bodySignature, flipped, keysOf, verdict } from "./verification.ts";

const githubSecret = "It's a Secret to Everybody";
const githubBody = "Hello, World!";
const githubDigest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

function hmac(secret: string, body: string | Uint8Array): string {
  return createHmac("sha256", secret).update(body).digest("hex");
}

const secret = fc.string({ minLength: 1, maxLength: 100, unit: "binary" });
const bodyBytes = fc.uint8Array({ minLength: 1, maxLength: 2_000 });

test("GitHub's published vector verifies", () => {
  assert.equal(verdict(bodySignature(githubDigest), keysOf(githubSecret), githubBody), "current");
});

test("Atlassian's published vector verifies, and is not GitHub's", () => {
  const digest = "a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9";
  assert.equal(verdict(bodySignature(digest), keysOf(githubSecret), "Hello World!"), "current");
  assert.equal(verdict(bodySignature(digest), keysOf(githubSecret), githubBody), null);
});

test("if several headers carry a body's signature, each must be right", () => {
  const wrong = hmac("another", githubBody);
  const keys = keysOf(githubSecret);
  assert.equal(verdict(bodySignature(githubDigest, githubDigest), keys, githubBody), "current");
  assert.equal(verdict(bodySignature(githubDigest, wrong), keys, githubBody), null);
  assert.equal(verdict(bodySignature(wrong, githubDigest), keys, githubBody), null);
  assert.equal(verdict(bodySignature(), keys, githubBody), null);
});

test("two headers may not be right with one secret each", () => {
  const keys = keysOf("the new secret", "the old secret");
  const mixed = bodySignature(hmac("the new secret", githubBody), hmac("the old secret", githubBody));
  assert.equal(verdict(mixed, keys, githubBody), null);
});

test("a digest that is cut short or goes on is refused", () => {
  const keys = keysOf(githubSecret);
  for (const length of [0, 1, 16, 31]) {
    assert.equal(verdict(bodySignature(githubDigest.slice(0, length * 2)), keys, githubBody), null);
  }
  assert.equal(verdict(bodySignature(`${githubDigest}00`), keys, githubBody), null);
});

test("the signature of a body verifies with either secret, however the body is cut into chunks", () => {
  fc.assert(
    fc.property(secret, secret, bodyBytes, fc.nat(2_000), (current, previous, body, cut) => {
      fc.pre(current !== previous);
      const keys = keysOf(current, previous);
      const chunks = [body.subarray(0, cut), body.subarray(cut)];
      assert.equal(verdict(bodySignature(hmac(current, body)), keys, ...chunks), "current");
      assert.equal(verdict(bodySignature(hmac(previous, body)), keys, ...chunks), "previous");
    }),
    { numRuns: 1_000 },
  );
});

test("any flipped bit of the body, or of the signature, is refused", () => {
  fc.assert(
    fc.property(secret, bodyBytes, fc.nat(), fc.nat(7), (key, body, position, bit) => {
      const keys = keysOf(key);
      const digest = hmac(key, body);
      assert.equal(verdict(bodySignature(digest), keys, flipped(body, position, bit)), null);
      const near = flipped(Buffer.from(digest, "hex"), position, bit).toString("hex");
      assert.equal(verdict(bodySignature(near), keys, body), null);
    }),
    { numRuns: 5_000 },
  );
});

test("another secret never verifies: one byte off, longer, or empty", () => {
  fc.assert(
    fc.property(secret, secret, bodyBytes, (ours, theirs, body) => {
      fc.pre(ours !== theirs && !isPaddedSame(ours, theirs));
      assert.equal(verdict(bodySignature(hmac(theirs, body)), keysOf(ours), body), null);
      assert.equal(verdict(bodySignature(hmac("", body)), keysOf(`x${ours}`), body), null);
    }),
    { numRuns: 2_000 },
  );
});

test("bodies of every length from 0 to 10,000 bytes verify, and not with a byte more or less", () => {
  const keys = keysOf(githubSecret);
  const bytes = Buffer.alloc(10_001, "ä{}\n");
  for (let length = 0; length <= 10_000; length += length < 300 ? 1 : 97) {
    const body = bytes.subarray(0, length);
    const signature = bodySignature(hmac(githubSecret, body));
    assert.equal(verdict(signature, keys, body), "current");
    assert.equal(verdict(signature, keys, bytes.subarray(0, length + 1)), null);
    if (length > 0) assert.equal(verdict(signature, keys, bytes.subarray(0, length - 1)), null);
  }
});

/** HMAC pads a key with zero bytes, so two that differ in nothing else are the same key. */
function isPaddedSame(one: string, other: string): boolean {
  return one.replace(/\0+$/, "") === other.replace(/\0+$/, "");
}
