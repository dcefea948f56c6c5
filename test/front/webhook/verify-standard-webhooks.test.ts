import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { StandardWebhookSignature } from "../../../src/front/webhook/verify-signature.ts";
import {
  deliveryDigest,
  isFresh,
  standardWebhookSignature,
} from "../../../src/front/webhook/verify-signature.ts";
import { bodySignature, flipped, keysOf, verdict } from "./verification.ts";

const githubDigest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

const standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const standardBody = '{"test": 2432232314}';
const standardHeaders = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

function standardSignature(changes: Partial<typeof standardHeaders> = {}): StandardWebhookSignature {
  const claim = standardWebhookSignature({ ...standardHeaders, ...changes });
  assert(claim.kind === "standard-webhooks");
  return claim;
}

test("the vector of the Standard Webhooks libraries verifies, and its near miss does not", () => {
  const keys = keysOf(standardSecret);
  assert.equal(verdict(standardSignature(), keys, standardBody), "current");
  const nearMiss = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=";
  assert.equal(verdict(standardSignature({ "webhook-signature": nearMiss }), keys, standardBody), null);
});

test("a Standard Webhooks secret is the bytes behind whsec_, in base64", () => {
  const keys = keysOf("whsec_dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3Q=");
  const signature = standardSignature({
    "webhook-id": "3f1b6a1e-0000-4000-8000-000000000001",
    "webhook-timestamp": "1700000000",
    "webhook-signature": "v1,VsBK6JzScVPSc2z35OtfOQYUZnmI88CrmZt9qP6+OX8=",
  });
  assert.equal(verdict(signature, keys, '{"object_kind":"push"}'), "current");
});

test("one right signature of several is enough for Standard Webhooks, which rotates like that", () => {
  const wrong = `v1,${Buffer.alloc(32, 7).toString("base64")}`;
  const list = `${wrong} v1a,unknown ${standardHeaders["webhook-signature"]}`;
  const signature = standardSignature({ "webhook-signature": list });
  assert.equal(verdict(signature, keysOf(standardSecret), standardBody), "current");
});

test("any flipped bit of a Standard Webhooks body, and any other id or timestamp, is refused", () => {
  const keys = keysOf(standardSecret);
  fc.assert(
    fc.property(
      fc.nat(),
      fc.nat(7),
      fc.nat(9_999_999_999),
      fc.stringMatching(/^[^.]{1,40}$/),
      (position, bit, time, id) => {
        assert.equal(
          verdict(standardSignature(), keys, flipped(Buffer.from(standardBody), position, bit)),
          null,
        );
        fc.pre(String(time) !== standardHeaders["webhook-timestamp"] && id !== standardHeaders["webhook-id"]);
        const later = { ...standardSignature(), timestamp: String(time) };
        assert.equal(verdict(later, keys, standardBody), null);
        assert.equal(verdict({ ...standardSignature(), id }, keys, standardBody), null);
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a Standard Webhooks timestamp is taken within five minutes of our clock, both ways", () => {
  const signature = standardSignature();
  const signedMs = Number(signature.timestamp) * 1_000;
  for (const offsetMs of [0, 1, 300_000, -300_000]) assert(isFresh(signature, signedMs + offsetMs));
  for (const offsetMs of [300_001, -300_001, 86_400_000]) assert(!isFresh(signature, signedMs + offsetMs));
  assert(isFresh(bodySignature(githubDigest), 0));
});

test("an attempt at the same delivery later has the same digest, another id or body another one", () => {
  const body = Buffer.from(standardBody);
  const digest = deliveryDigest(standardSignature(), body);
  assert.equal(deliveryDigest(standardSignature({ "webhook-timestamp": "1614265999" }), body), digest);
  assert.notEqual(deliveryDigest(standardSignature({ "webhook-id": "msg_other" }), body), digest);
  assert.notEqual(deliveryDigest(standardSignature(), Buffer.from("{}")), digest);
  assert.notEqual(deliveryDigest(bodySignature(githubDigest), body), digest);
});
