import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createCatchUp } from "../../src/deployments/catch-up.ts";
import type { RemoteHead } from "../../src/deployments/deployment.ts";
import { createDoubts } from "../../src/deployments/doubts.ts";
import { recordPush, recordRequest } from "../../src/deployments/record.ts";
import type { Store } from "../../src/platform/sqlite/store.ts";
import type { Push } from "../../src/receiver/push.ts";
import { commitOf, pushOf, run, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

const [a, b, c] = [commitOf("A"), commitOf("B"), commitOf("C")];
const toB = pushOf({ before: a, commit: b });
const toC = pushOf({ before: b, commit: c });
const unanswered: RemoteHead = { kind: "unknown", detail: "no answer" };

test("the copy of an old delivery deploys nothing if the remote lags for a moment", async (t) => {
  const asked = asking(t, [b, c, c]);
  asked.deploy(toB, toC);
  asked.deliver(toB);
  await asked.untilAsked(3);
  assert.deepEqual(asked.found(), []);
});

test("a copied delivery is asked about when nothing of its branch runs or waits", async (t) => {
  const asked = asking(t, [b, b]);
  asked.deploy(toB);
  asked.deliver(toC);
  asked.deliver(toB);
  await asked.untilLooked();
  assert.equal(asked.count(), 0);
  run(asked.store, "succeeded");
  await asked.untilAsked(2);
  assert.deepEqual(asked.found(), [b]);
});

test("a repeated step is deployed at once if the remote confirms it", async (t) => {
  const asked = asking(t, [b]);
  asked.deploy(toB, toC);
  asked.deliver({ ...toB, digest: "reported again" });
  await asked.untilAsked(1);
  assert.deepEqual(asked.found(), [b]);
});

test("a host whose servers lag behind its deliveries is asked again", async (t) => {
  const asked = asking(t, [c, b]);
  asked.deploy(toB, toC);
  asked.deliver({ ...toB, digest: "reported again" });
  await asked.untilAsked(2);
  assert.deepEqual(asked.found(), [b]);
});

test("without an answer a step is deployed only if it can have been made again", async (t) => {
  const asked = asking(t, [unanswered, unanswered]);
  asked.deploy(toB, toC);
  asked.deliver({ ...toB, digest: "reported again" });
  await asked.untilAsked(1);
  assert.deepEqual(asked.found(), []);
  asked.deploy(pushOf({ before: c, commit: a }));
  asked.deliver({ ...toB, digest: "made again" });
  await asked.untilAsked(2);
  assert.deepEqual(asked.found(), [b]);
});

test("a roll back stays, whatever is delivered again", async (t) => {
  const asked = asking(t, [c, c, c]);
  asked.deploy(toB, toC);
  asked.store.transaction(() => recordRequest(asked.store, { trigger: "rollback", ref: toB.ref, commit: b }));
  run(asked.store, "succeeded");
  asked.deliver(toC);
  asked.deliver({ ...toC, digest: "reported again" });
  await asked.untilAsked(1);
  assert.deepEqual(asked.found(), []);
});

test("a doubt about one branch does not keep the other from being asked about", async (t) => {
  const asked = asking(t, [a]);
  const [first, second] = [a, b].map((commit) => pushOf({ ref: "refs/heads/master", commit })) as [
    Push,
    Push,
  ];
  asked.deploy(toB, first, second);
  asked.deliver(toC);
  asked.deliver(toB);
  asked.deliver(first);
  await asked.untilAsked(2);
  assert.deepEqual(asked.refs(), ["refs/heads/master", "refs/heads/master"]);
  assert.deepEqual(asked.found(), [a]);
});

test("of a flood of doubtful pushes the newest hundred are asked about", async (t) => {
  let sizes: readonly number[] = [];
  const doubts = createDoubts({
    store: temporaryStore(t),
    async ask(_, about) {
      sizes = [...sizes, about.size];
      return { kind: "in place", head: commitOf("149") };
    },
    ...{ deploy() {}, onFault() {}, askEveryMs: 20 },
  });
  t.after(doubts.stop);
  const common = { ref: toB.ref, before: null, isFirst: true, isLikely: false };
  for (let index = 0; index < 150; index += 1) doubts.add({ ...common, commit: commitOf(`${index}`) });
  await until("it was asked", () => sizes.length > 0);
  assert.deepEqual(sizes, [100]);
});

/** Catch-up over a real database, whose remote gives `answers` one by one and the last of them again and again. */
function asking(t: TestContext, answers: readonly (string | RemoteHead)[]) {
  const store = temporaryStore(t);
  const refs: string[] = [];
  const catchUp = createCatchUp({
    store,
    refs: ["refs/heads/main", "refs/heads/master"],
    async readRemoteHead(ref) {
      const answer = answers[Math.min(refs.length, answers.length - 1)] ?? unanswered;
      // It is on its way for a turn of the loop.
      setImmediate(() => refs.push(ref));
      await new Promise((resolve) => setImmediate(resolve));
      return typeof answer === "string" ? { kind: "head", commit: answer } : answer;
    },
    request: (request) => store.transaction(() => recordRequest(store, request)),
    log: pino({ level: "silent" }),
    intervalMs: 0,
    askEveryMs: 20,
  });
  t.after(catchUp.stop);
  const deliver = (push: Push) => {
    const { doubt } = store.transaction(() => recordPush(store, push));
    if (doubt) catchUp.resolve(doubt);
  };
  return {
    store,
    deliver,
    deploy: (...pushes: readonly Push[]) => {
      for (const push of pushes) {
        deliver(push);
        run(store, "succeeded");
      }
    },
    refs: () => refs,
    count: () => refs.length,
    found: () => findCaughtUp(store),
    untilAsked: (count: number) => until(`${count} answers`, () => refs.length >= count),
    /** Waits until it would have been asked. */
    async untilLooked() {
      const startMs = performance.now();
      await until("a second is over", () => performance.now() - startMs > 1_200);
    },
  };
}

function findCaughtUp(store: Store): readonly unknown[] {
  const sql = "SELECT commit_id FROM deployments WHERE trigger = 'catch-up' ORDER BY id";
  return store.all(sql).map(({ commit_id }) => commit_id);
}
