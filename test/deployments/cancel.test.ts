import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { Ending, Run, Runner, Start } from "../../src/deployments/deployment.ts";
import { createQueue } from "../../src/deployments/queue.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import { pushOf, record, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

test("a deployment that is cancelled while it starts is ended as soon as it runs", async (t) => {
  const { queue, start, stateOf } = await startOne(t);
  assert.equal(queue.cancel(1), true);
  const ended = Promise.withResolvers<Ending>();
  const run: Run = {
    ended: ended.promise,
    end: (reason) => ended.resolve({ state: reason, exitCode: null, problem: null }),
  };
  start.resolve({ kind: "started", run });
  await until("it is cancelled", () => stateOf() === "cancelled");
});

test("a cancelled deployment that could not be started is not tried again", async (t) => {
  const { queue, start, stateOf } = await startOne(t);
  assert.equal(queue.cancel(1), true);
  start.resolve({ kind: "try-again", detail: "No process could be made." });
  await until("it is cancelled", () => stateOf() === "cancelled");
});

test("cancelling ends the questions to the remote that come before a script", async (t) => {
  const { queue, start, signal, stateOf } = await startOne(t);
  signal().addEventListener("abort", () => start.resolve({ kind: "wait", reason: "It was cancelled." }));
  assert.equal(queue.cancel(1), true);
  await until("it is cancelled", () => stateOf() === "cancelled");
});

test("a running deployment is cancelled even if the disk fails", async (t) => {
  const { queue, start, stateOf, store } = await startOne(t);
  const ended = Promise.withResolvers<Ending>();
  const end = t.mock.fn((reason: "cancelled" | "interrupted") =>
    ended.resolve({ state: reason, exitCode: null, problem: null }),
  );
  start.resolve({ kind: "started", run: { ended: ended.promise, end } });
  t.mock.method(
    store,
    "transaction",
    () => {
      throw new Error("database or disk is full");
    },
    { times: 1 },
  );
  assert.equal(queue.cancel(1), true);
  await until("it is cancelled", () => stateOf() === "cancelled");
  assert.equal(end.mock.callCount(), 1);
});

test("cancelling a deployment whose interruption is on disk removes it from the queue", async (t) => {
  const { queue, start, store, stateOf } = await startOne(t);
  const ended = Promise.withResolvers<Ending>();
  start.resolve({ kind: "started", run: { ended: ended.promise, end: () => {} } });
  const { transaction } = store;
  // The history, which is pruned next, keeps the queue for a second: the disk fails.
  t.mock.method(store, "transaction", (work: () => unknown) => {
    if (stateOf() !== "running") throw new Error("database or disk is full");
    return transaction(work);
  });
  ended.resolve({ state: "interrupted", exitCode: null, problem: null });
  await until("it is queued again", () => stateOf() === "queued");
  t.mock.restoreAll();
  assert.equal(queue.cancel(1), true);
  await queue.stop(0);
  assert.equal(stateOf(), "cancelled");
});

/** A queue that has claimed deployment 1, whose start is `start` to decide. */
async function startOne(t: TestContext) {
  const store = temporaryStore(t);
  const start = Promise.withResolvers<Start>();
  let signal: AbortSignal | null = null;
  const runner: Runner = {
    start(_, given) {
      signal = given;
      return start.promise;
    },
    adopt: async () => ({ kind: "gone" }),
    tidy: () => {},
  };
  const queue = createQueue({ store, runner, log: pino({ enabled: false }) });
  queue.start();
  record(store, pushOf());
  queue.wake();
  const stateOf = () => findDeployment(store, 1)?.state;
  await until("it is claimed", () => stateOf() === "running");
  t.after(async () => {
    start.resolve({ kind: "refused", problem: { code: "script_missing", detail: "" } });
    await queue.stop(0);
  });
  return { queue, start, signal: () => signal ?? assert.fail(), stateOf, store };
}
