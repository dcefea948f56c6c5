import assert from "node:assert/strict";
import { test } from "node:test";
import { recordRequest } from "../../src/deployments/queue.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

test("a newer push takes the place in the queue of the one it supersedes", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ ref: "refs/heads/main" }));
  record(store, pushOf({ ref: "refs/heads/master" }));
  record(store, pushOf({ ref: "refs/heads/main" }));
  assert.deepEqual([run(store, "succeeded").id, run(store, "succeeded").id], [3, 2]);
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

test("a push supersedes what catch-up has requested, and waits", (t) => {
  const store = temporaryStore(t);
  const commit = commitOf("B");
  store.transaction(() => recordRequest(store, { trigger: "catch-up", ref: "refs/heads/main", commit }));
  assert.equal(record(store, pushOf({ commit })).deployment.id, 2);
  assert.deepEqual(placesOf(store), [
    [1, "superseded", 2],
    [2, "queued", null],
  ]);
});

function placesOf(store: Store) {
  return store
    .all("SELECT id, state, superseded_by FROM deployments ORDER BY id")
    .map(({ id, state, superseded_by }) => [id, state, superseded_by]);
}
