import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const gitlab = hostNamed("gitlab");

testDeliveries(gitlab);

test("a plain token is refused with what to set instead", () => {
  const claim = gitlab.claimSignature(headersOf(loadDelivery("gitlab", "plain-token")));
  assert(claim.kind === "unsupported");
  for (const words of ["plain text", "signing token", "GitLab 19.0", "whsec_", "WEBHOOK_SECRET"])
    assert(claim.help.includes(words), `the help does not say "${words}"`);
});

test("a malformed signature is not saved by the plain token beside it", () => {
  const delivery = loadDelivery("gitlab", "signature-and-token");
  const headers = headersOf(delivery, { "webhook-signature": "v1,short" });
  assert.equal(gitlab.claimSignature(headers).kind, "malformed");
});

test("a body of another kind than its event is unusable", () => {
  const tag = payloadOf(loadDelivery("gitlab", "push-tag"));
  const merge = payloadOf(loadDelivery("gitlab", "merge-request-event"));
  for (const payload of [tag, merge, {}]) {
    const reading = gitlab.read("Push Hook", payload);
    assert(reading.kind === "unusable");
    assert.equal(reading.field, "/object_kind");
  }
});

test("a system hook of no known event is still another event", () => {
  assert.deepEqual(gitlab.read("System Hook", {}), { kind: "other-event" });
});
