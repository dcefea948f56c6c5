import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { makeSecret } from "../../../src/config/secret.ts";
import {
  deliveryDigest,
  isFresh,
  makeKeys,
  readSignature,
  startVerification,
  type VerifiableSignature,
} from "../../../src/front/webhook/verify-signature.ts";
import { sign } from "../../harness/delivery.ts";

const githubDigest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const secret = fc.string({ minLength: 1, maxLength: 100, unit: "binary" });
const bodyBytes = fc.uint8Array({ minLength: 1, maxLength: 2_000 });

test("any flipped bit of the body, or of the signature, is refused", () => {
  fc.assert(
    fc.property(secret, bodyBytes, fc.nat(), fc.nat(7), (key, body, position, bit) => {
      const digest = sign(Buffer.from(body), key);
      assert.equal(verdict(bodySignature(digest), key, flipped(body, position, bit)), null);
      const near = flipped(Buffer.from(digest, "hex"), position, bit).toString("hex");
      assert.equal(verdict(bodySignature(near), key, body), null);
    }),
    { numRuns: 5_000 },
  );
});

// Standard Webhooks 1.0.0, with the vector of its own libraries.

const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const standardBody = '{"test": 2432232314}';
const right = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const nearMiss = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=";

const malformedStandard: Readonly<Record<string, IncomingHttpHeaders>> = {
  "signatures of other versions alone": { "webhook-signature": "v1a,bm90IG91cnM= v2,x" },
  "a digest that is too short": { "webhook-signature": "v1,g0hM9SsE+OTPJTGt" },
  "base64 without its padding": { "webhook-signature": right.slice(0, -1) },
  "one malformed signature beside a right one": { "webhook-signature": `v1,x ${right}` },
  "an id with a full stop": { "webhook-id": "msg.1614265330" },
  "a timestamp with a full stop": { "webhook-timestamp": "1614265330.5" },
  "a timestamp beyond exact numbers": { "webhook-timestamp": "1".repeat(16) },
};

test("of Standard Webhooks, what is not whole is malformed", () => {
  for (const [what, changes] of Object.entries(malformedStandard))
    assert.equal(readStandard(changes).kind, "malformed", what);
});

test("of several signatures of Standard Webhooks one right one is enough, and its secret is base64", () => {
  const list = `v1a,bm90IG91cnM= ${nearMiss} v2,anything ${right}`;
  assert.equal(verdict(standard({ "webhook-signature": list }), standardSecret, standardBody), "current");
  assert.equal(verdict(standard({ "webhook-signature": nearMiss }), standardSecret, standardBody), null);
});

test("a Standard Webhooks timestamp is taken within five minutes of our clock, both ways", () => {
  const signedMs = 1_614_265_330_000;
  for (const offsetMs of [0, 1, 300_000, -300_000]) assert(isFresh(standard(), signedMs + offsetMs));
  for (const offsetMs of [300_001, -300_001, 86_400_000]) assert(!isFresh(standard(), signedMs + offsetMs));
  assert(isFresh(bodySignature(githubDigest), 0));
});

test("an attempt at the same delivery later has the same digest, another id or body another one", () => {
  const body = Buffer.from(standardBody);
  const digest = deliveryDigest(standard(), body);
  assert.equal(deliveryDigest(standard({ "webhook-timestamp": "1614265999" }), body), digest);
  assert.notEqual(deliveryDigest(standard({ "webhook-id": "msg_other" }), body), digest);
  assert.notEqual(deliveryDigest(standard(), Buffer.from("{}")), digest);
  assert.notEqual(deliveryDigest(bodySignature(githubDigest), body), digest);
});

function verdict(signature: VerifiableSignature, secret: string, body: string | Uint8Array) {
  const keys = makeKeys({ current: makeSecret(secret), previous: null });
  const verification = startVerification(signature, keys);
  verification.update(Buffer.from(body));
  return verification.verdict();
}

function bodySignature(hex: string): VerifiableSignature {
  return { kind: "body", digests: [Buffer.from(hex, "hex")] };
}

function readStandard(changes: IncomingHttpHeaders) {
  const headers = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": right,
    ...changes,
  };
  return readSignature(headers, ["webhook-signature"]);
}

function standard(changes: IncomingHttpHeaders = {}): VerifiableSignature {
  const claim = readStandard(changes);
  assert("digests" in claim);
  return claim;
}

/** The same bytes but for one bit; `position` may be past the end. */
function flipped(bytes: Uint8Array, position: number, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  const index = position % copy.length;
  copy[index] = (copy[index] ?? 0) ^ (1 << bit);
  return copy;
}

test("every project is verified with two keys, so that time tells nobody which ones rotate theirs", () => {
  const current = makeSecret("a secret of this project");
  assert.equal(makeKeys({ current, previous: null }).length, makeKeys({ current, previous: current }).length);
});
