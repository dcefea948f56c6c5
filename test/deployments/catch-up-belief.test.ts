import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createCatchUp } from "../../src/deployments/catch-up.ts";
import type { Ending, RemoteHead } from "../../src/deployments/deployment.ts";
import { createBelieveHead } from "../../src/deployments/doubts.ts";
import { recordRequest } from "../../src/deployments/record.ts";
import type { Store } from "../../src/platform/sqlite/store.ts";
import { mainRefs } from "../../src/receiver/push.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

const ref = "refs/heads/main";

test("an older head is believed when the remote reports it twice in a row", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  assert.equal(await look("A"), null);
  assert.equal(await look("B"), null);
  assert.equal(await look("A"), null);
  assert.equal(await look("A"), commitOf("A"));
  assert.equal(await look("A"), null);
});

test("an older head that is reported twice at once is not believed", (t) => {
  const store = temporaryStore(t);
  deployed(store, "A");
  deployed(store, "B");
  const [patient, hasty] = [createBelieveHead(store, 60_000), createBelieveHead(store, 0)];
  const verdicts = [patient, hasty].map((believeHead) => [1, 2].map(() => believeHead(ref, commitOf("A"))));
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

test("a push to another project takes nothing from a look at the remote", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  const other = store.of("another");
  assert.equal(await look("B", () => void record(other, pushOf())), commitOf("B"));
});

test("catch-up leaves a roll back and a cancelled deployment alone", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("B"), null);
  deployed(store, "C", "cancelled");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("C"), null);
});

test("a roll back stays until the next push, even if its delivery was lost", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  assert.equal(await look("B"), null);
  assert.equal(await look("C"), commitOf("C"));
  assert.equal(await look("C"), null);
});

test("a head known only from its delivery does not undo a roll back", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  rolledBack(store, "A");
  // As a long history leaves it.
  store.run("DELETE FROM deployments WHERE commit_id = ?", commitOf("B"));
  for (let count = 0; count < 3; count += 1) assert.equal(await look("B"), null);
});

test("a tip that only another push's run had checked out does not undo a roll back", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  deployed(store, "B");
  const sql = "UPDATE deployments SET checked_out_commit = ? WHERE commit_id = ?";
  store.run(sql, commitOf("C"), commitOf("B"));
  rolledBack(store, "A");
  for (let count = 0; count < 3; count += 1) assert.equal(await look("C"), null);
});

test("an answer is not believed if a push came during the question", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  const duringLook = () => record(store, pushOf({ commit: commitOf("C") }));
  assert.equal(await look("B", duringLook), null);
});

test("an answer that is not a commit counts as no answer", async (t) => {
  const { store, look } = lookingAt(t);
  deployed(store, "A");
  assert.equal(await look("B", undefined, "--upload-pack=evil"), null);
});

/** Catch-up over a real database, with a remote that answers as the test sets. */
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
    request: (request) => store.transaction(() => recordRequest(store, request)),
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
      catchUp.start(0);
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
  store.transaction(() => recordRequest(store, { trigger: "rollback", ref, commit: commitOf(name) }));
  run(store, "succeeded");
}
