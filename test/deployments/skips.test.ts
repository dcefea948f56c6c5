import assert from "node:assert/strict";
import { test } from "node:test";
import { type Deployment, findDeployment } from "../../src/deployments/deployment.ts";
import { findNewest } from "../../src/deployments/doubts.ts";
import {
  findLastDeployedCommit,
  findLastGood,
  findLatest,
  listLastOfBranches,
} from "../../src/deployments/history.ts";
import { recordRequest } from "../../src/deployments/record.ts";
import { findSkipRules, settleSkipped } from "../../src/deployments/skips.ts";
import { claimNext, putBack } from "../../src/deployments/states.ts";
import type { Store } from "../../src/platform/sqlite/store.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

const ref = "refs/heads/main";

/** A push from one named commit to another, whose payload mentions the marker. */
const step = (before: string | null, commit: string) =>
  pushOf({ before: before === null ? null : commitOf(before), commit: commitOf(commit), mentionsSkip: true });

function claim(store: Store): Deployment {
  const claimed = store.transaction(() => claimNext(store));
  assert.ok(claimed, "something is queued");
  return claimed;
}

function skipNext(store: Store, rule: "byMarker" | "byPaths" = "byMarker"): Deployment {
  const claimed = claim(store);
  const skip = { rule, reason: "for a test", source: null };
  assert.equal(
    store.transaction(() => settleSkipped(store, claimed, skip)),
    true,
  );
  return claimed;
}

function rulesOf(store: Store, deployment: Deployment) {
  const rules = findSkipRules(store, deployment, false);
  return rules && [rules.live.id, rules.byMarker, rules.byPaths];
}

test("nothing is skipped before something was deployed", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  assert.equal(rulesOf(store, claim(store)), null);
});

test("a push that does not mention the marker is not looked at, unless there are paths", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  record(store, pushOf({ before: commitOf("a") }));
  const claimed = claim(store);
  assert.equal(rulesOf(store, claimed), null);
  assert.equal(findSkipRules(store, claimed, true)?.byPaths, true);
});

test("a skipped deployment is not good, not the last one deployed, and hides no failure", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  const good = run(store, "succeeded");
  record(store, step("a", "b"));
  const failed = run(store, "failed");
  record(store, step("b", "c"));
  const skipped = skipNext(store);
  assert.equal(findLastGood(store)?.id, good.id);
  assert.equal(findLastDeployedCommit(store), commitOf("a"));
  assert.equal(findLatest(store)?.id, failed.id);
  assert.deepEqual(
    listLastOfBranches(store).map(({ id }) => id),
    [failed.id, skipped.id],
  );
  assert.equal(findDeployment(store, skipped.id)?.skipReason, "for a test");
  assert.deepEqual(findNewest(store, ref)?.commits[0], commitOf("c"), "catch-up knows it");
});

test("a skipped push that is delivered again is a duplicate that says how to deploy it", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  const push = step("a", "b");
  record(store, push);
  skipNext(store);
  const again = record(store, push);
  assert.equal(again.kind, "duplicate");
  assert.match(again.kind === "duplicate" ? again.detail : "", /was skipped.* hotpush deploy$/);
  assert.equal(again.doubt, null);
});

test("after a script that failed or was interrupted, paths say nothing until one succeeds", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  record(store, step("a", "b"));
  run(store, "failed");
  record(store, step("b", "c"));
  assert.deepEqual(rulesOf(store, skipNext(store)), [1, true, false]);
  record(store, step("c", "d"));
  run(store, "succeeded");
  record(store, step("d", "e"));
  const claimed = claim(store);
  assert.deepEqual(rulesOf(store, claimed), [4, true, true]);
  assert.deepEqual(rulesOf(store, { ...claimed, attempts: 1 }), [4, true, true]);
  store.run("UPDATE deployments SET attempts = 2 WHERE id = ?", claimed.id);
  assert.deepEqual(rulesOf(store, claimed), [4, true, false], "it was interrupted");
});

test("a push that superseded a waiting one is not skipped by its marker, through any chain", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  for (const [before, commit] of ["ab", "bc", "cd"]) record(store, step(before ?? "", commit ?? ""));
  assert.deepEqual(rulesOf(store, claim(store)), [1, false, true]);
});

test("a push that superseded what a person requested is not skipped at all", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  store.transaction(() => recordRequest(store, { trigger: "manual", ref, commit: commitOf("a") }));
  record(store, step("a", "b"));
  record(store, step("b", "c"));
  assert.equal(rulesOf(store, claim(store)), null);
});

test("what a person requests is never skipped", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  for (const trigger of ["manual", "rollback"] as const) {
    store.transaction(() => recordRequest(store, { trigger, ref, commit: commitOf("a") }));
    const claimed = claim(store);
    assert.equal(findSkipRules(store, claimed, true), null);
    store.transaction(() => putBack(store, claimed));
  }
});

test("an older push that arrives after a skipped one is deployed with it", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  record(store, step("b", "c"));
  skipNext(store);
  const late = record(store, step("a", "b"));
  assert.equal(late.deployment.state, "superseded");
  const again = claim(store);
  assert.equal(again.commit, commitOf("c"));
  assert.equal(findSkipRules(store, again, true)?.byMarker, false);
});

test("an older push that arrives during the decision puts the deployment back into the queue", (t) => {
  const store = temporaryStore(t);
  record(store, step(null, "a"));
  run(store, "succeeded");
  record(store, step("b", "c"));
  const claimed = claim(store);
  assert.deepEqual(rulesOf(store, claimed), [1, true, true]);
  record(store, step("a", "b"));
  const skip = { rule: "byMarker", reason: "for a test", source: null } as const;
  assert.equal(
    store.transaction(() => settleSkipped(store, claimed, skip)),
    false,
  );
  assert.equal(claim(store).id, claimed.id);
});
