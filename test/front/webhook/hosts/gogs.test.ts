import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const gogs = hostNamed("gogs");

testDeliveries(gogs);

test("a push without head_commit is read: Gogs sends none", () => {
  const payload = payloadOf(loadDelivery("gogs", "push-main"));
  assert(!Object.hasOwn(payload, "head_commit"));
  assert.equal(gogs.read("push", payload).kind, "push");
});

test("a created tag that calls itself a push has not the shape of one", () => {
  assert.equal(gogs.read("push", payloadOf(loadDelivery("gogs", "tag-created"))).kind, "unusable");
});

test("no signature header at all is a missing signature", () => {
  const headers = headersOf(loadDelivery("gogs", "push-main"), { "x-gogs-signature": undefined });
  assert.deepEqual(gogs.claimSignature(headers), { kind: "missing" });
});
