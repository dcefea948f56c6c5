import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, isAuthentic, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const forgejo = hostNamed("forgejo");

const pushed = loadDelivery("forgejo", "push-main");

testDeliveries(forgejo);

test("a deleted main, with its full ref, is not a push even if the header says so", () => {
  const payload = payloadOf(loadDelivery("forgejo", "branch-deleted"));
  assert.equal(payload.ref, "refs/heads/main");
  assert.equal(forgejo.read("push", payload).kind, "unusable");
});

test("Forgejo's own signature is claimed beside those of Gitea, Gogs and GitHub", () => {
  const claim = forgejo.claimSignature(headersOf(pushed));
  assert(claim.kind === "body");
  assert.equal(claim.digests.length, 4);
});

test("one wrong signature of the four is claimed", () => {
  const claim = forgejo.claimSignature(headersOf(pushed, { "x-forgejo-signature": "0".repeat(64) }));
  assert(!isAuthentic(claim, pushed.secret, pushed.body));
});
