import assert from "node:assert/strict";
import { test } from "node:test";
import { hostNamed, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const bitbucketDataCenter = hostNamed("bitbucket-data-center");

testDeliveries(bitbucketDataCenter);

const pushed = payloadOf(loadDelivery("bitbucket-data-center", "push-main"));
const change = { ref: { id: "refs/heads/main" }, fromHash: "a", toHash: "b", type: "UPDATE" };

test("a mirror's event that calls itself a push is unusable", () => {
  const payload = payloadOf(loadDelivery("bitbucket-data-center", "mirror-event"));
  const reading = bitbucketDataCenter.read("repo:refs_changed", payload);
  assert(reading.kind === "unusable");
  assert.equal(reading.field, "/eventKey");
});

test("SHA-1 in the signature header is malformed", () => {
  const headers = { "x-hub-signature": `sha1=${"a".repeat(40)}` };
  assert.equal(bitbucketDataCenter.claimSignature(headers).kind, "malformed");
});

for (const field of ["ref", "fromHash", "toHash", "type"]) {
  test(`a change without its ${field} makes the push unusable`, () => {
    const changes = [change, { ...change, [field]: undefined }];
    const reading = bitbucketDataCenter.read("repo:refs_changed", { ...pushed, changes });
    assert(reading.kind === "unusable");
    assert.equal(reading.field, "/changes/1");
  });
}

test("a push without its list of changes is unusable", () => {
  const reading = bitbucketDataCenter.read("repo:refs_changed", { ...pushed, changes: "all" });
  assert.equal(reading.kind, "unusable");
});

test("a repository without its project has no name", () => {
  const reading = bitbucketDataCenter.read("repo:refs_changed", {
    ...pushed,
    repository: { slug: "tide-board" },
  });
  assert(reading.kind === "push");
  assert.equal(reading.repository, null);
});
