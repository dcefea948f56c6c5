import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { Ending, GuardOrder, Run, Runner, Start } from "../../src/deployments/deployment.ts";
import { createQueue, createTurns, type QueueOptions } from "../../src/deployments/queue.ts";
import { claimNext, findDeployment } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { type DeploymentReport, noReport } from "../../src/rollout/report.ts";
import { openDefault, pushOf, record, run as runNext, temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const refused: Start = { kind: "refused", problem: { code: "script_missing", detail: "" } };
const liveAtMs = 1_790_000_000_000;
const endingWith = (state: Ending["state"]): Ending => ({ state, exitCode: null, problem: null });

// Cancelling

test("a deployment that is cancelled while it starts is ended as soon as it runs", async (t) => {
  const { queue, start, run, untilState } = await startOne(t);
  assert.equal(queue.cancel(1), true);
  start({ kind: "started", run });
  await untilState("cancelled");
});

test("cancelling ends the questions to the remote that come before a script", async (t) => {
  const { queue, start, signal, untilState } = await startOne(t);
  signal().addEventListener("abort", () => start({ kind: "wait", reason: "It was cancelled." }));
  assert.equal(queue.cancel(1), true);
  await untilState("cancelled");
});

const fail = () => {
  throw new Error("the database fails");
};

test("a running deployment is cancelled even if the disk fails", async (t) => {
  const { queue, start, run, store, untilState } = await startOne(t);
  start({ kind: "started", run });
  t.mock.method(store, "transaction", fail, { times: 1 });
  assert.throws(() => queue.cancel(1), /database fails/);
  await untilState("cancelled");
});

for (const [state, left] of [
  ["failed", []],
  // Of one that the stop itself has ended, the exit code means nothing.
  ["interrupted", [1]],
] as const)
  test(`a run that ${state} while the disk was full is left to the next service as what it is`, async (t) => {
    const { queue, start, run, end, store, tidied } = await startOne(t);
    start({ kind: "started", run });
    const { mock } = t.mock.method(store, "transaction", fail);
    end(endingWith(state));
    await until("the disk has refused it", () => mock.callCount() > 0);
    await queue.stop(0);
    assert.deepEqual(tidied, left);
  });

// Other instances

for (const state of ["running", "interrupted"] as const)
  test(`a push recorded during recovery supersedes a deployment that was ${state}`, async (t) => {
    const { store, other } = openTwo(t);
    record(store, pushOf());
    if (state === "running") store.transaction(() => claimNext(store));
    else runNext(store, state);
    let isRecorded = false;
    // A moment between the finding and what is made of it.
    const tidy = () => {
      if (!isRecorded) record(other, pushOf());
      isRecorded = true;
    };
    queueOf(t, store, { tidy });
    await until("the newer one ran", () => findDeployment(store, 2)?.state === "failed");
    const { state: now, supersededBy } = findDeployment(store, 1) ?? {};
    assert.deepEqual([now, supersededBy], ["superseded", 2]);
  });

test("what a killed service had claimed, and not started, was no attempt", async (t) => {
  const store = temporaryStore(t);
  record(store, pushOf());
  store.transaction(() => claimNext(store));
  queueOf(t, store, {});
  await until("it has run", () => findDeployment(store, 1)?.state === "failed");
  assert.equal(findDeployment(store, 1)?.attempts, 1);
});

test("a claim whose commit failed, and is on disk all the same, blocks nothing", async (t) => {
  const store = temporaryStore(t);
  const { transaction } = store;
  record(store, pushOf());
  const commitAndFail = (work: () => unknown) => {
    transaction(work);
    throw new Error("disk I/O error");
  };
  t.mock.method(store, "transaction", commitAndFail, { times: 1 });
  queueOf(t, store, {});
  await until("it has run", () => findDeployment(store, 1)?.state === "failed");
  assert.equal(findDeployment(store, 1)?.attempts, 1);
});

test("a database that a fault has closed is opened again though nothing new comes", async (t) => {
  const store = temporaryStore(t);
  const { transaction } = store;
  record(store, pushOf());
  const { mock } = t.mock.method(store, "get", fail);
  let isOpen = false;
  t.mock.method(store, "transaction", (work: () => unknown) => {
    mock.restore();
    isOpen = true;
    return transaction(work);
  });
  queueOf(t, store, {});
  await until("it has run", () => isOpen && findDeployment(store, 1)?.state === "failed");
});

test("an ending that the changed record does not allow blocks nothing", async (t) => {
  const { store, other } = openTwo(t);
  const { start, run, end } = await startOne(t, store);
  start({ kind: "started", run });
  other.run("UPDATE deployments SET state = 'failed' WHERE id = 1");
  end(endingWith("succeeded"));
  record(store, pushOf());
  await until("the next one ran", () => findDeployment(store, 2)?.state === "failed");
  assert.equal(findDeployment(store, 1)?.state, "failed");
});

test("a project whose script cannot be started leaves its turn to the others", async (t) => {
  const store = openDefault(temporaryDirectory(t));
  const turns = createTurns(1);
  const started: string[] = [];
  const push = (name: string, start: Start) => {
    const noteStart = async () => {
      started.push(name);
      return start;
    };
    record(store.of(name), pushOf());
    queueOf(t, store.of(name), { start: noteStart }, { inTurn: turns.run });
  };
  push("a", { kind: "wait", reason: "No network." });
  await until("it waits to try again", () => started.length === 1);
  push("b", refused);
  t.after(() => store.close());
  await until("the other one has had its turn", () => started.includes("b"));
});

// The guard

test("the switch is recorded and announced while the script goes on, guarded or not", async (t) => {
  const { queue, store, report, changes } = await startGuarded(t);
  const known = changes.length;
  report({ liveAtMs });
  await until("it is live", () => findDeployment(store, 1)?.liveAtMs === liveAtMs);
  assert.deepEqual(changes.slice(known), [1]);
  assert.deepEqual([findDeployment(store, 1)?.state, queue.findGuarded()], ["running", null]);
  report({ isGuarding: true });
  await until("it is guarded", () => queue.findGuarded()?.id === 1);
});

for (const [what, act] of [
  ["a newer push", ({ store }) => record(store, pushOf())],
  ["the stop of the service", ({ queue }) => void queue.stop(60_000)],
] satisfies [string, (guarded: Awaited<ReturnType<typeof startGuarded>>) => unknown][])
  test(`${what} ends the guard with the verdict so far`, async (t) => {
    const guarded = await startGuarded(t);
    guarded.report({ isGuarding: true, liveAtMs });
    act(guarded);
    await until("the order", () => guarded.orders.length > 0);
    assert.deepEqual(guarded.orders, ["end"]);
    guarded.end(endingWith("succeeded"));
    await guarded.untilState("succeeded");
  });

test("what the guard or a person takes back is not deployed again by its delivery", async (t) => {
  for (const [what, state] of [
    ["a person", "failed"],
    ["the guard", "failed"],
    ["a cancellation", "cancelled"],
  ] as const) {
    const { queue, store, push, report, orders, end, untilState } = await startGuarded(t);
    report({ isGuarding: true, liveAtMs });
    await until("it is live", () => findDeployment(store, 1)?.liveAtMs === liveAtMs);
    if (what === "a person") queue.goBack(1);
    assert.deepEqual(orders, what === "a person" ? ["back"] : []);
    if (what === "the guard") report({ isGuarding: false, liveAtMs: null, isTakenBack: true });
    if (what === "a cancellation") queue.cancel(1);
    end(endingWith(state));
    await untilState(state);
    assert.equal(record(store, push).kind, "duplicate", what);
  }
});

// Rests

test("a flood of deliveries has what waits looked at no sooner than its shortest rest", async (t) => {
  const { looks, queue } = startWaiting(t, { leastMs: 1_500, mostMs: 3_600_000 });
  await until("the first look", () => looks.length === 1);
  const flood = setInterval(queue.lookSoon, 1);
  t.after(() => clearInterval(flood));
  await until("the second look", () => looks.length === 2);
  assert.ok((looks[1] ?? 0) - (looks[0] ?? 0) >= 1_400, "it rests for 1.5 s");
});

test("without a delivery it rests for the longer time", async (t) => {
  const { looks } = startWaiting(t, { leastMs: 0, mostMs: 1_500 });
  await until("two looks", () => looks.length === 2);
  assert.ok((looks[1] ?? 0) - (looks[0] ?? 0) >= 1_400);
});

test("a delivery that comes during a look is not lost", async (t) => {
  const { looks, queue } = startWaiting(t, { leastMs: 0, mostMs: 3_600_000 }, () => queue.lookSoon());
  await until("the second look", () => looks.length === 2);
});

/** A queue with this runner. Nothing is left of what a dead service began, and other starts are refused. */
function queueOf(t: TestContext, store: Store, runner: Partial<Runner>, more: Partial<QueueOptions> = {}) {
  const whole: Runner = {
    start: async () => refused,
    adopt: async () => ({ kind: "gone", hasBegun: false }),
    tidy: () => {},
    ...runner,
  };
  const queue = createQueue({
    store,
    runner: whole,
    exchange: { read: () => noReport, order: () => {}, tidy: () => {} },
    isHeld: () => false,
    inTurn: createTurns(1).run,
    onChange: () => {},
    onStart: () => {},
    askEveryMs: () => 10_000,
    log: pino({ enabled: false }),
    ...more,
  });
  t.after(() => queue.stop(0));
  queue.start();
  return queue;
}

/** A queue that has claimed deployment 1, whose start, report and end the test decides. */
async function startOne(t: TestContext, store = temporaryStore(t)) {
  const started = Promise.withResolvers<Start>();
  const ended = Promise.withResolvers<Ending>();
  const run: Run = { ended: ended.promise, end: (reason) => ended.resolve(endingWith(reason)) };
  t.after(() => {
    started.resolve(refused);
    ended.resolve(endingWith("succeeded"));
  });
  let signal: AbortSignal | null = null;
  let reported = noReport;
  const orders: GuardOrder[] = [];
  const changes: number[] = [];
  const tidied: number[] = [];
  const tidy = (id: number) => void tidied.push(id);
  const start: Runner["start"] = async ({ id }, given) => {
    signal = given;
    return id === 1 ? await started.promise : refused;
  };
  const exchange = {
    read: (id: number) => (id === 1 ? reported : noReport),
    order: (_: number, order: GuardOrder) => void orders.push(order),
    tidy: () => {},
  };
  const queue = queueOf(t, store, { start, tidy }, { exchange, onChange: (id) => void changes.push(id) });
  const push = pushOf();
  record(store, push);
  queue.wake();
  const untilState = (state: string) =>
    until(`it is ${state}`, () => findDeployment(store, 1)?.state === state);
  await untilState("running");
  return {
    queue,
    store,
    push,
    run,
    orders,
    changes,
    tidied,
    untilState,
    start: started.resolve,
    end: ended.resolve,
    signal: () => signal ?? assert.fail(),
    report(more: Partial<DeploymentReport>) {
      reported = { ...reported, ...more };
    },
  };
}

async function startGuarded(t: TestContext) {
  const one = await startOne(t);
  one.start({ kind: "started", run: { ...one.run, end: () => {} } });
  return one;
}

/** The database as two instances on one state directory have it. */
function openTwo(t: TestContext): { readonly store: Store; readonly other: Store } {
  const directory = temporaryDirectory(t);
  const [store, other] = [openDefault(directory), openDefault(directory)];
  t.after(() => {
    store.close();
    other.close();
  });
  return { store, other };
}

/** A queue with one push, whose every look says that it waits. */
function startWaiting(
  t: TestContext,
  rest: { readonly leastMs: number; readonly mostMs: number },
  onFirst: () => void = () => {},
) {
  const store = temporaryStore(t);
  const looks: number[] = [];
  record(store, pushOf());
  const start: Runner["start"] = async () => {
    if (looks.push(performance.now()) === 1) onFirst();
    return { kind: "wait", reason: "Its checks have not ended.", rest };
  };
  return { looks, queue: queueOf(t, store, { start }) };
}
