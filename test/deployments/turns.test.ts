import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Runner } from "../../src/deployments/deployment.ts";
import { createQueue, createTurns } from "../../src/deployments/queue.ts";
import { openDeployments } from "../../src/deployments/store.ts";
import type { Log } from "../../src/log.ts";
import { pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const log = { info() {}, warn() {}, error() {} } as unknown as Log;

/** The queues of two projects, of which one may run at a time. They note what they start. */
function twoQueues(t: TestContext, startA: Runner["start"]) {
  const store = openDeployments(temporaryDirectory(t));
  const turns = createTurns(1);
  const queues = { a: startA, b: refuse };
  const started: string[] = [];
  const [a, b] = Object.entries(queues).map(([name, start]) => {
    const runner: Runner = {
      start: (...what) => {
        started.push(name);
        return start(...what);
      },
      adopt: async () => ({ kind: "gone" }),
      tidy() {},
    };
    const queue = createQueue({ store: store.of(name), runner, makeTurn: turns.make, log });
    t.after(() => queue.stop(0));
    queue.start();
    const push = () => {
      record(store.of(name), pushOf());
      queue.wake();
    };
    return { ...queue, push };
  });
  t.after(() => store.close());
  assert(a && b);
  return { a, b, started, turns };
}

const refuse: Runner["start"] = async () => ({
  kind: "refused",
  problem: { code: "script_missing", detail: "" },
});

test("a project whose script cannot be started leaves its turn to the others", async (t) => {
  const { a, b, started } = twoQueues(t, async () => ({ kind: "try-again", detail: "No network." }));
  a.push();
  await until("it waits to try again", () => started.length === 1);
  b.push();
  await until("the other one has had its turn", () => started.includes("b"));
});

test("what waits during a hold is called when the last hold is over", async () => {
  const turns = createTurns(1);
  const called = Promise.withResolvers<void>();
  const turn = turns.make(called.resolve);
  const releases = ["one", "two"].map((reason) => turns.holdAll(holdOf(reason), () => {}));
  assert.deepEqual(
    turns.holds().map(({ reason }) => reason),
    ["one", "two"],
  );
  assert.equal(
    turn.claim(() => "a"),
    null,
  );
  for (const release of releases) release();
  await called.promise;
  assert.deepEqual(turns.holds(), []);
});

function holdOf(reason: string) {
  return { sinceMs: 0, reason, heldBy: null };
}
