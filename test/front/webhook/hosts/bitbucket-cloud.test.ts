import assert from "node:assert/strict";
import { test } from "node:test";
import { identifyHost } from "../../../../src/front/webhook/git-hosts.ts";
import { headersOf, hostNamed, loadDelivery, testDeliveries } from "./fixtures.ts";

const bitbucketCloud = hostNamed("bitbucket-cloud");

testDeliveries(bitbucketCloud);

const target = { hash: "4b825dc642cb6eb9a060e54bf8d69288fbee4904" };
const branch = { type: "branch", name: "main", target };

function readChange(change: unknown) {
  return bitbucketCloud.read("repo:push", { push: { changes: [change] } });
}

test("a push is known by its event alone", () => {
  const headers = headersOf(loadDelivery("bitbucket-cloud", "push-main"), { "x-request-uuid": undefined });
  assert.equal(identifyHost(headers).name, "bitbucket-cloud");
});

test("SHA-1 in the signature header is malformed, as is no hex at all", () => {
  for (const value of [`sha1=${"a".repeat(40)}`, "sha256=", ""])
    assert.equal(bitbucketCloud.claimSignature({ "x-hub-signature": value }).kind, "malformed");
});

test("GitHub's header for SHA-256 is not Bitbucket's", () => {
  const headers = { "x-hub-signature-256": `sha256=${"a".repeat(64)}` };
  assert.deepEqual(bitbucketCloud.claimSignature(headers), { kind: "missing" });
});

test("a branch whose name looks like a full ref stays a short name", () => {
  const reading = readChange({ old: null, new: { ...branch, name: "refs/heads/main" } });
  assert(reading.kind === "push");
  assert.equal(reading.changes[0]?.ref, "refs/heads/refs/heads/main");
});

test("a tag named main is no branch", () => {
  const reading = readChange({ old: null, new: { ...branch, type: "tag" } });
  assert(reading.kind === "push");
  assert.equal(reading.changes[0]?.ref, "refs/tags/main");
});

const unusableChanges = [
  ["no object", 7],
  ["without a new side, which is not a deletion", { old: branch }],
  ["of neither branch nor tag", { old: null, new: { ...branch, type: "bookmark" } }],
  ["without a name", { old: null, new: { type: "branch", target } }],
  ["without a commit", { old: branch, new: { ...branch, target: null } }],
  ["of nothing to nothing", { old: null, new: null }],
] as const;

for (const [what, change] of unusableChanges) {
  test(`a change that is ${what} makes the push unusable`, () => {
    const reading = readChange(change);
    assert(reading.kind === "unusable");
    assert.equal(reading.field, "/push/changes/0");
  });
}

test("a push without its list of changes is unusable", () => {
  for (const payload of [{}, { push: null }, { push: { changes: { length: 1 } } }])
    assert.equal(bitbucketCloud.read("repo:push", payload).kind, "unusable");
});
