import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import type { Ending, Runner } from "../../src/deployments/deployment.ts";
import { createQueue } from "../../src/deployments/queue.ts";
import { claimNext, findDeployment } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { openDefault, pushOf, record, run } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const succeeded: Ending = { state: "succeeded", exitCode: 0, problem: null };
const interrupted: Ending = { state: "interrupted", exitCode: null, problem: null };

test("a push that another instance records supersedes a run that was interrupted", async (t) => {
  const { store, other } = openTwo(t);
  const endings = [interrupted, succeeded];
  startQueue(t, store, {
    ...runnerThat(() => endings.shift()),
    tidy: (id) => void (id === 1 && record(other, pushOf())),
  });
  record(other, pushOf());
  await untilSuperseded(store);
});

for (const state of ["running", "interrupted"] as const) {
  test(`a push recorded during recovery supersedes a deployment that was ${state}`, async (t) => {
    const { store, other } = openTwo(t);
    record(store, pushOf());
    if (state === "running") store.transaction(() => claimNext(store));
    else run(store, state);
    startQueue(t, store, { ...runnerThat(() => succeeded), tidy: recordOnce(other) });
    await untilSuperseded(store);
  });
}

test("an ending that the changed record does not allow blocks nothing", async (t) => {
  const { store, other } = openTwo(t);
  const ended = Promise.withResolvers<Ending>();
  startQueue(t, store, {
    ...runnerThat(() => succeeded),
    start: async ({ id }) => {
      const run = { ended: id === 1 ? ended.promise : Promise.resolve(succeeded), end: () => {} };
      return { kind: "started", run };
    },
  });
  record(store, pushOf());
  await until("it runs", () => stateOf(store, 1) === "running");
  other.run("UPDATE deployments SET state = 'failed' WHERE id = 1");
  ended.resolve(succeeded);
  record(store, pushOf());
  await until("the next one ran", () => stateOf(store, 2) === "succeeded");
  assert.equal(stateOf(store, 1), "failed");
});

/** The database as two instances on one state directory have it. */
function openTwo(t: TestContext): { readonly store: Store; readonly other: Store } {
  const directory = temporaryDirectory(t);
  const store = openDefault(directory);
  const other = openDefault(directory);
  t.after(() => {
    store.close();
    other.close();
  });
  return { store, other };
}

/** Of its runs, each ends as `next` says; nothing is left of those that a dead service began. */
function runnerThat(next: () => Ending | undefined): Runner {
  return {
    start: async () => ({
      kind: "started",
      run: { ended: Promise.resolve(next() ?? succeeded), end: () => {} },
    }),
    adopt: async () => ({ kind: "gone" }),
    tidy: () => {},
  };
}

/** A moment between the finding and what is made of it. */
function recordOnce(other: Store): Runner["tidy"] {
  let isRecorded = false;
  return () => {
    if (!isRecorded) record(other, pushOf());
    isRecorded = true;
  };
}

function startQueue(t: TestContext, store: Store, runner: Runner): void {
  const queue = createQueue({ store, runner, log: pino({ enabled: false }) });
  t.after(() => queue.stop(0));
  queue.start();
}

async function untilSuperseded(store: Store): Promise<void> {
  await until("the newer one ran", () => stateOf(store, 2) === "succeeded");
  const { state, supersededBy } = findDeployment(store, 1) ?? {};
  assert.deepEqual([state, supersededBy], ["superseded", 2]);
}

function stateOf(store: Store, id: number): string | undefined {
  return findDeployment(store, id)?.state;
}
