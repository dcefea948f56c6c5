import assert from "node:assert/strict";
import { test } from "node:test";
import { settle, takeBack } from "../../src/deployments/execute.ts";
import { pruneHistory } from "../../src/deployments/history.ts";
import { recordPush } from "../../src/deployments/queue.ts";
import { claimNext, findDeployment } from "../../src/deployments/store.ts";
import { countOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

test("of 50 pushes that wait the newest is left, and each names the one that superseded it", (t) => {
  const store = temporaryStore(t);
  for (let count = 0; count < 50; count += 1) record(store, pushOf());
  const rows = store.all("SELECT state, superseded_by AS by FROM deployments ORDER BY id");
  assert.deepEqual(
    rows.map(({ state, by }) => `${state} by ${by}`),
    [...Array.from({ length: 49 }, (_, index) => `superseded by ${index + 2}`), "queued by null"],
  );
});

test("a branch that is pushed all the time does not starve the other", (t) => {
  const store = temporaryStore(t);
  const refs: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    record(store, pushOf({ ref: "refs/heads/master" }));
    record(store, pushOf({ ref: "refs/heads/main" }));
    refs.push(run(store, "succeeded").ref);
  }
  assert.equal(refs.filter((ref) => ref === "refs/heads/main").length, 3);
});

for (const state of ["failed", "timed_out", "cancelled"] as const) {
  test(`a delivery that is redelivered after its deployment has ${state} is queued again`, (t) => {
    const store = temporaryStore(t);
    const push = pushOf();
    record(store, push);
    run(store, state);
    const again = record(store, push);
    assert.equal(again.kind, "accepted");
    assert.deepEqual(again.deployment, { id: 1, ref: push.ref, commit: push.commit, state: "queued" });
    const claimed = run(store, "succeeded");
    assert.deepEqual([claimed.id, claimed.attempts], [1, 2], "no two attempts have one number");
  });
}

for (const state of ["succeeded", "interrupted", "running"] as const) {
  test(`a delivery that is redelivered when its deployment has ${state} changes nothing`, (t) => {
    const store = temporaryStore(t);
    const push = pushOf();
    record(store, push);
    store.transaction(() => store.run("UPDATE deployments SET state = ?", state));
    const again = record(store, push);
    assert.deepEqual([again.kind, again.deployment.state], ["duplicate", state]);
    assert.equal(findDeployment(store, 1)?.state, state);
  });
}

test("what was told to go back does not run again when its service was killed", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf());
  store.transaction(() => takeBack(store, 1));
  run(store, "interrupted");
  assert.equal(findDeployment(store, 1)?.state, "cancelled");
});

test("a captured delivery repeats a failure ten times at most", (t) => {
  const store = temporaryStore(t);
  const push = pushOf();
  let runs = 0;
  for (let sent = 0; sent < 20; sent += 1) {
    if (record(store, push).kind === "duplicate") continue;
    run(store, "failed");
    runs += 1;
  }
  assert.equal(runs, 10);
});

test("what is tried again is given up when it was interrupted three times, as at first", (t) => {
  const store = temporaryStore(t);
  const push = pushOf();
  record(store, push);
  run(store, "failed");
  record(store, push);
  const states = ["interrupted", "interrupted", "interrupted"].map(() => {
    const claimed = store.transaction(() => claimNext(store));
    const ending = { state: "interrupted", exitCode: null, problem: null } as const;
    store.transaction(() => settle(store, claimed ?? assert.fail(), ending, { doesResume: true }));
    return findDeployment(store, 1)?.state;
  });
  assert.deepEqual(states, ["queued", "queued", "failed"]);
});

test("a delivery whose deployment is pruned stays a duplicate, whatever its result", (t) => {
  const store = temporaryStore(t);
  const failed = pushOf();
  record(store, failed);
  run(store, "failed");
  for (let count = 0; count < 1_000; count += 1) {
    store.transaction(() => {
      recordPush(store, pushOf({ ref: "refs/heads/master" }));
      const claimed = claimNext(store);
      if (claimed) settle(store, claimed, { state: "succeeded", exitCode: null, problem: null });
    });
  }
  store.transaction(() => pruneHistory(store));
  assert.equal(findDeployment(store, 1), null);
  const again = record(store, failed);
  assert.deepEqual([again.kind, again.deployment.state], ["duplicate", "failed"]);
  assert.equal(countOf(store, "deployments"), 1_000);
});
