import assert from "node:assert/strict";
import { test } from "node:test";
import { findDeployment } from "../../src/deployments/deployment.ts";
import { recordRequest } from "../../src/deployments/record.ts";
import { claimNext } from "../../src/deployments/states.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

test("an older push that comes late is superseded by the newest", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: commitOf("A"), commit: commitOf("B") }));
  const late = record(store, pushOf({ before: null, commit: commitOf("A") }));
  assert.deepEqual([late.deployment.state, findDeployment(store, 2)?.supersededBy], ["superseded", 1]);
  assert.equal(findDeployment(store, 1)?.state, "queued");
});

test("the tip is deployed again after an older push that was taken for the newest", (t) => {
  const store = temporaryStore(t);
  const [a, b, c] = [commitOf("A"), commitOf("B"), commitOf("C")];
  const tip = pushOf({ before: b, commit: c });
  record(store, tip);
  run(store, "succeeded");
  record(store, pushOf({ before: null, commit: a }));
  run(store, "succeeded");
  record(store, pushOf({ before: a, commit: b }));
  assert.equal(run(store, "failed").commit, c);
  // A redelivery of the tip's push now means the deployment that failed.
  const again = record(store, tip);
  assert.deepEqual([again.kind, again.deployment.commit], ["accepted", c]);
});

test("the tip is not deployed again if the run of an older push had checked it out", (t) => {
  const store = temporaryStore(t);
  const [a, b, c] = [commitOf("A"), commitOf("B"), commitOf("C")];
  record(store, pushOf({ before: b, commit: c }));
  run(store, "succeeded");
  record(store, pushOf({ before: null, commit: a }));
  run(store, "succeeded");
  store.run("UPDATE deployments SET checked_out_commit = ? WHERE id = 2", c);
  assert.equal(record(store, pushOf({ before: a, commit: b })).deployment.state, "superseded");
  assert.equal(findDeployment(store, 3)?.supersededBy, 2);
});

test("an older push that comes late does not undo what a person put in place", (t) => {
  const store = temporaryStore(t);
  const [a, b] = [commitOf("A"), commitOf("B")];
  record(store, pushOf({ before: a, commit: b }));
  run(store, "succeeded");
  store.transaction(() => recordRequest(store, { trigger: "rollback", ref: "refs/heads/main", commit: a }));
  run(store, "succeeded");
  assert.equal(record(store, pushOf({ before: null, commit: a })).deployment.state, "superseded");
  assert.equal(
    store.transaction(() => claimNext(store)),
    null,
  );
});

test("a force push back to a commit that was deployed before is deployed", (t) => {
  const store = temporaryStore(t);
  const [a, b] = [commitOf("A"), commitOf("B")];
  for (const [before, commit] of [[null, a] as const, [a, b] as const, [b, a] as const]) {
    record(store, pushOf({ before, commit }));
    assert.equal(run(store, "succeeded").commit, commit);
  }
});

test("a push from a commit to itself, as a test button sends it, is deployed", (t) => {
  const store = temporaryStore(t);
  const commit = commitOf("A");
  record(store, pushOf({ commit }));
  run(store, "succeeded");
  record(store, pushOf({ before: commit, commit }));
  assert.equal(run(store, "succeeded").id, 2);
});
