import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import { standardWebhookSignature } from "../../../../src/front/webhook/verify-signature.ts";
import { isAuthentic } from "./fixtures.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"test": 2432232314}';
const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const wrong = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OA=";
const headers: IncomingHttpHeaders = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": signature,
};

test("the vector of the specification's own libraries is a right signature", () => {
  assert(isAuthentic(standardWebhookSignature(headers), secret, body));
});

test("their near miss is well-formed and wrong", () => {
  const claim = standardWebhookSignature({ ...headers, "webhook-signature": wrong });
  assert.equal(claim.kind, "standard-webhooks");
  assert(!isAuthentic(claim, secret, body));
});

test("a signature in GitLab's manner is right", () => {
  const claim = standardWebhookSignature({
    "webhook-id": "3f1b6a1e-0000-4000-8000-000000000001",
    "webhook-timestamp": "1700000000",
    "webhook-signature": "v1,VsBK6JzScVPSc2z35OtfOQYUZnmI88CrmZt9qP6+OX8=",
  });
  assert(isAuthentic(claim, "whsec_dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3Q=", '{"object_kind":"push"}'));
});

test("of several signatures all of version 1 are claimed, and others are skipped", () => {
  const list = `v1a,bm90IG91cnM= ${wrong} v2,anything ${signature}`;
  const claim = standardWebhookSignature({ ...headers, "webhook-signature": list });
  assert(claim.kind === "standard-webhooks");
  assert.equal(claim.digests.length, 2);
  assert(isAuthentic(claim, secret, body));
});

test("no signature header is a missing signature, whatever else there is", () => {
  const { "webhook-signature": _, ...rest } = headers;
  assert.deepEqual(standardWebhookSignature(rest), { kind: "missing" });
});

const malformed: readonly (readonly [string, IncomingHttpHeaders])[] = [
  ["an empty signature", { "webhook-signature": "" }],
  ["signatures of other versions alone", { "webhook-signature": "v1a,bm90IG91cnM= v2,x" }],
  ["a version without a signature", { "webhook-signature": "v1," }],
  ["a digest that is too short", { "webhook-signature": "v1,g0hM9SsE+OTPJTGt" }],
  ["base64 without its padding", { "webhook-signature": signature.slice(0, -1) }],
  ["base64 with bits to spare that are not zero", { "webhook-signature": signature.replace("OE=", "OF=") }],
  ["base64 of the kind for addresses", { "webhook-signature": signature.replace("+", "-") }],
  ["hex", { "webhook-signature": `v1,${"a".repeat(64)}` }],
  ["one malformed signature beside a right one", { "webhook-signature": `v1,x ${signature}` }],
  ["two signature headers", { "webhook-signature": `${signature}, ${signature}` }],
  ["no id", { "webhook-id": undefined }],
  ["an empty id", { "webhook-id": "" }],
  ["an id with a full stop", { "webhook-id": "msg.1614265330" }],
  ["no timestamp", { "webhook-timestamp": undefined }],
  ["an empty timestamp", { "webhook-timestamp": "" }],
  ["a timestamp with a full stop", { "webhook-timestamp": "1614265330.5" }],
  ["a timestamp below zero", { "webhook-timestamp": "-1614265330" }],
  ["a timestamp with an exponent", { "webhook-timestamp": "1e9" }],
  ["a timestamp that is a date", { "webhook-timestamp": "2021-02-25T15:02:10Z" }],
  ["a timestamp beyond exact numbers", { "webhook-timestamp": "1".repeat(16) }],
];

for (const [what, changes] of malformed) {
  test(`${what} is malformed`, () => {
    assert.equal(standardWebhookSignature({ ...headers, ...changes }).kind, "malformed");
  });
}
