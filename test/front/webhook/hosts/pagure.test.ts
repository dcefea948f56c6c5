import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const pagure = hostNamed("pagure");

testDeliveries(pagure);

test("the old SHA-1 header alone is no signature", () => {
  const headers = headersOf(loadDelivery("pagure", "push-main"), { "x-pagure-signature-256": undefined });
  assert.deepEqual(pagure.claimSignature(headers), { kind: "missing" });
});

test("a body of another topic than its header is unusable", () => {
  const created = payloadOf(loadDelivery("pagure", "branch-created-event"));
  for (const topic of ["git.receive", "git.branch.deletion"]) {
    const reading = pagure.read(topic, created);
    assert(reading.kind === "unusable");
    assert.equal(reading.field, "/topic");
  }
});

test("a branch is short, and whatever is not under refs/heads/ comes in full", () => {
  const refs = [
    ["main", "refs/heads/main"],
    ["feature/main", "refs/heads/feature/main"],
    ["refs/tags/main", "refs/tags/main"],
    ["refs/notes/commits", "refs/notes/commits"],
    ["refs/heads/main", "refs/heads/refs/heads/main"],
  ] as const;
  for (const [branch, ref] of refs) {
    const reading = pagure.read("git.receive", { topic: "git.receive", msg: { branch, end_commit: "a" } });
    assert(reading.kind === "push");
    assert.equal(reading.changes[0]?.ref, ref);
  }
});

test("a push without branch or commit is unusable, and the field is named", () => {
  const branchless = pagure.read("git.receive", { topic: "git.receive", msg: { end_commit: "a" } });
  const commitless = pagure.read("git.receive", { topic: "git.receive", msg: { branch: "main" } });
  const deletion = pagure.read("git.branch.deletion", { topic: "git.branch.deletion", msg: [] });
  assert(branchless.kind === "unusable" && commitless.kind === "unusable" && deletion.kind === "unusable");
  assert.deepEqual(
    [branchless.field, commitless.field, deletion.field],
    ["/msg/branch", "/msg/end_commit", "/msg/branch"],
  );
});
