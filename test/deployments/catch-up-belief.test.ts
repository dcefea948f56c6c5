import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createJudgeHead } from "../../src/deployments/believe-head.ts";
import { createCatchUp } from "../../src/deployments/catch-up.ts";
import type { Ending, RemoteHead } from "../../src/deployments/deployment.ts";
import { recordWish } from "../../src/deployments/record.ts";
import type { Store } from "../../src/deployments/store.ts";
import { mainRefs } from "../../src/receiver/push.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

const ref = "refs/heads/main";

test("an older head, as a lagging mirror says it, is believed when it is said twice in a row", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  assert.equal(await look("A"), null);
  assert.equal(await look("B"), null);
  assert.equal(await look("A"), null);
  assert.equal(await look("A"), commitOf("A"));
  assert.equal(await look("A"), null);
});

test("an older head that is said twice at once, as after a copied delivery, is not believed for that", (t) => {
  const store = temporaryStore(t);
  deployed(store, "A");
  deployed(store, "B");
  const [patient, hasty] = [createJudgeHead(store, 60_000), createJudgeHead(store, 0)];
  const verdicts = [patient, hasty].map((judge) => [1, 2].map(() => judge(ref, commitOf("A"))));
  assert.deepEqual(verdicts, [
    ["doubtful", "doubtful"],
    ["doubtful", "missing"],
  ]);
});

test("a head that was never seen is believed at once", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  assert.equal(await look("B"), commitOf("B"));
});

test("who rolled back stays there, and so does who cancelled", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("B"), null);
  deployed(store, "C", "cancelled");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("C"), null);
});

test("who rolled back stays there until the next push, also where its delivery was lost", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  assert.equal(await look("B"), null);
  assert.equal(await look("C"), commitOf("C"));
  assert.equal(await look("C"), null);
});

test("a head that only its delivery is remembered of is known: nobody who rolled back is moved to it", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  // As a long history leaves it.
  store.run("DELETE FROM deployments WHERE commit_id = ?", commitOf("B"));
  for (let count = 0; count < 3; count += 1) assert.equal(await look("B"), null);
});

test("who rolled back is not moved to a tip that only another push's run had checked out", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  const sql = "UPDATE deployments SET checked_out_commit = ? WHERE commit_id = ?";
  store.run(sql, commitOf("C"), commitOf("B"));
  rolledBack(store, "A");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("C"), null);
});

test("an answer during which a push came is not believed, for it may be older than that", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  const duringLook = () => record(store, pushOf({ commit: commitOf("C") }));
  assert.equal(await look("B", duringLook), null);
});

test("an answer that is no commit is none", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  assert.equal(await look("B", undefined, "--upload-pack=evil"), null);
});

/** Catch-up over a real database, with a remote that says what it is told to. */
function lookingAt(t: TestContext) {
  const store = temporaryStore(t);
  let answer: () => RemoteHead = () => ({ kind: "unknown", detail: "nothing yet" });
  let asked = Promise.withResolvers<void>();
  const catchUp = createCatchUp({
    store,
    refs: mainRefs,
    readRemoteHead: async () => {
      const head = answer();
      setImmediate(asked.resolve);
      return head;
    },
    wake: () => {},
    log: pino({ level: "silent" }),
    intervalMs: 3_600_000,
    askEveryMs: 0,
  });
  return {
    store,
    /** Looks once; gives the commit that is deployed because of it, or null. */
    async look(name: string, meanwhile = () => {}, commit: string = commitOf(name)) {
      const newest = newestCatchUp(store);
      asked = Promise.withResolvers();
      answer = () => {
        meanwhile();
        return { kind: "head", commit };
      };
      catchUp.start();
      await asked.promise;
      catchUp.stop();
      const found = newestCatchUp(store);
      if (found?.id === newest?.id) return null;
      run(store, "succeeded");
      return found?.commit_id ?? null;
    },
  };
}

function newestCatchUp(store: Store) {
  return store.get(
    "SELECT id, commit_id FROM deployments WHERE trigger = 'catch-up' ORDER BY id DESC LIMIT 1",
  );
}

function deployed(store: Store, name: string, state: Ending["state"] = "succeeded"): void {
  record(store, pushOf({ commit: commitOf(name) }));
  run(store, state);
}

function rolledBack(store: Store, name: string): void {
  store.transaction(() => recordWish(store, { trigger: "rollback", ref, commit: commitOf(name) }));
  run(store, "succeeded");
}
