import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { Ending, GuardOrder, RolloutExchange, Runner } from "../../src/deployments/deployment.ts";
import { isTakenBack } from "../../src/deployments/execute.ts";
import type { Push } from "../../src/deployments/push.ts";
import { createQueue, createTurns } from "../../src/deployments/queue.ts";
import { findDeployment } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { noReport } from "../../src/rollout/report.ts";
import { commitOf, pushOf, record, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

const log = pino({ enabled: false });
const liveAtMs = 1_790_000_000_000;
const succeeded: Ending = { state: "succeeded", exitCode: 0, problem: null };

test("the switch is recorded and announced while the script goes on, guarded or not", async (t) => {
  const { queue, store, guard, live, changes } = await startGuarded(t);
  const known = changes.length;
  live();
  await until("it is live", () => findDeployment(store, 1)?.liveAtMs === liveAtMs);
  assert.deepEqual(changes.slice(known), [1]);
  assert.deepEqual([findDeployment(store, 1)?.state, queue.findGuarded()], ["running", null]);
  guard(true);
  await until("it is guarded", () => queue.findGuarded()?.id === 1);
});

test("a newer push ends the guard with the verdict so far, and is deployed then", async (t) => {
  const { store, guard, orders, end } = await startGuarded(t);
  guard(true);
  record(store, pushOf({ commit: commitOf("2"), digest: "2" }));
  await until("the order", () => orders.length > 0);
  assert.deepEqual(orders, ["end"]);
  assert.equal(findDeployment(store, 2)?.state, "queued");
  guard(false);
  end(succeeded);
  await until("its end", () => findDeployment(store, 1)?.state === "succeeded");
  await until("the newer one", () => findDeployment(store, 2)?.state === "failed");
});

test("a roll back that waits makes a guarded version go back", async (t) => {
  const { queue, store, push, guard, orders } = await startGuarded(t);
  guard(true);
  queue.request({ trigger: "rollback", ref: "refs/heads/main", commit: commitOf("0") });
  await until("the order", () => orders.length > 0);
  assert.deepEqual(orders, ["back"]);
  assertTakenBack(store, push);
});

test("what the guard or a person takes back is not deployed again by its delivery", async (t) => {
  for (const [what, state] of [
    ["a person", "failed"],
    ["the guard", "failed"],
    ["a cancellation", "cancelled"],
  ] as const) {
    const { queue, store, push, guard, goBack, end } = await startGuarded(t);
    guard(true);
    await until("it is live", () => findDeployment(store, 1)?.liveAtMs === liveAtMs);
    if (what === "a person") queue.goBack(1);
    if (what === "the guard") goBack();
    if (what === "a cancellation") queue.cancel(1);
    end({ state, exitCode: null, problem: null });
    await until("its end", () => findDeployment(store, 1)?.state === state);
    assertTakenBack(store, push);
  }
});

function assertTakenBack(store: Store, push: Push): void {
  assert.equal(isTakenBack(store, 1), true);
  assert.equal(record(store, push).kind, "duplicate");
}

test("a service that stops ends the guard", async (t) => {
  const { queue, guard, orders, end } = await startGuarded(t);
  guard(true);
  const stopped = queue.stop(60_000);
  await until("the order", () => orders.length > 0);
  assert.deepEqual(orders, ["end"]);
  end(succeeded);
  await stopped;
});

test("a hold waits until nothing is guarded", async (t) => {
  const { store, guard, turns, end } = await startGuarded(t);
  guard(true);
  await until("it is live", () => findDeployment(store, 1)?.liveAtMs === liveAtMs);
  let isQuiet = false;
  turns.holdAll({ sinceMs: 0, reason: "", heldBy: null }, () => {
    isQuiet = true;
  });
  assert.equal(isQuiet, false);
  end(succeeded);
  await until("it is quiet", () => isQuiet);
});

/** A queue whose first deployment runs, and may be guarded. Later ones fail at once. */
async function startGuarded(t: TestContext) {
  const store = temporaryStore(t);
  const ended = Promise.withResolvers<Ending>();
  let isGuarding = false;
  let isLive = false;
  let isTakenBack = false;
  const orders: GuardOrder[] = [];
  const runner: Runner = {
    start: async ({ id }) =>
      id === 1
        ? { kind: "started", run: { ended: ended.promise, end: () => {} } }
        : { kind: "refused", problem: { code: "script_missing", detail: "" } },
    adopt: async () => ({ kind: "gone" }),
    tidy: () => {},
  };
  const exchange: RolloutExchange = {
    read: (id) => ({
      ...noReport,
      liveAtMs: id === 1 && isLive ? liveAtMs : null,
      isGuarding: id === 1 && isGuarding,
      isTakenBack: id === 1 && isTakenBack,
    }),
    order: (_id, order) => void orders.push(order),
    tidy: () => {},
  };
  const turns = createTurns(1);
  const changes: number[] = [];
  const onChange = (id: number) => void changes.push(id);
  const queue = createQueue({ store, runner, exchange, makeTurn: turns.make, log, onChange });
  queue.start();
  const push = pushOf();
  record(store, push);
  queue.wake();
  await until("it runs", () => findDeployment(store, 1)?.state === "running");
  t.after(async () => {
    ended.resolve(succeeded);
    await queue.stop(0);
  });
  const guard = (isOn: boolean) => {
    isGuarding = isOn;
    isLive = true;
  };
  const live = () => {
    isLive = true;
  };
  const goBack = () => {
    isGuarding = false;
    isLive = false;
    isTakenBack = true;
  };
  return { queue, store, push, guard, live, goBack, changes, orders, turns, end: ended.resolve };
}
