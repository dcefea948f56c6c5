import assert from "node:assert/strict";
import { test } from "node:test";
import { pruneHistory } from "../../src/deployments/history.ts";
import { recordPush, resume, settle, takeBack } from "../../src/deployments/record.ts";
import { claimNext, findDeployment } from "../../src/deployments/store.ts";
import { createHealthCheck } from "../../src/run.ts";
import { countOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

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

test("a delivery that comes again is queued again if its deployment failed, and changes nothing else", (t) => {
  const store = temporaryStore(t);
  const push = pushOf();
  record(store, push);
  run(store, "failed");
  assert.ok((findDeployment(store, 1)?.finishedAtMs ?? 0) > 0);
  for (const state of ["succeeded", "interrupted", "running", "failed", "timed_out", "cancelled"]) {
    store.run("UPDATE deployments SET state = ?", state);
    const isEnded = ["failed", "timed_out", "cancelled"].includes(state);
    const { kind, deployment } = record(store, push);
    assert.deepEqual([kind, deployment.id], [isEnded ? "accepted" : "duplicate", 1], state);
    const { state: now, finishedAtMs } = findDeployment(store, 1) ?? {};
    assert.deepEqual([now, isEnded && finishedAtMs], [isEnded ? "queued" : state, isEnded && null]);
  }
  const { id, attempts } = run(store, "succeeded");
  assert.deepEqual([id, attempts], [1, 2], "no two attempts have one number");
});

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
  const ending = { state: "interrupted", exitCode: null, problem: null } as const;
  const states = Array.from({ length: 3 }, () => {
    const claimed = store.transaction(() => claimNext(store)) ?? assert.fail();
    store.transaction(() => {
      settle(store, claimed, ending);
      resume(store, 1);
    });
    return findDeployment(store, 1)?.state;
  });
  assert.deepEqual(states, ["queued", "queued", "failed"]);
});

test("a run long past its time-out makes the service unhealthy until it is gone", async (t) => {
  const store = temporaryStore(t);
  const findFault = createHealthCheck(store, () => 10, { probeIntervalMs: 0, overdueMs: 10 });
  record(store, pushOf());
  const running = store.transaction(() => claimNext(store)) ?? assert.fail();
  assert.equal(findFault(), null, "it has only just been seen");
  await until("the run is overdue", () => /far past its time-out/.test(findFault() ?? ""));
  store.transaction(() => settle(store, running, { state: "succeeded", exitCode: 0, problem: null }));
  assert.equal(findFault(), null);
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
