import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { pruneHistory } from "../../src/deployments/history.ts";
import { recordPush } from "../../src/deployments/queue.ts";
import { findDeployment, noteStep } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { countOf, pushOf, temporaryStore } from "../harness/store.ts";

const silentLog = pino({ level: "silent" });

test("the newest 1,000 deployments are kept with their steps, and no other steps", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 1_005, "succeeded");
  for (const id of [1, 5, 6]) noteStep(store, deploymentOf(store, id), "Build", silentLog);
  prune(store);
  assert.deepEqual(store.get("SELECT min(id) AS first, count(*) AS n FROM deployments"), asRow(6, 1_000));
  assert.deepEqual(
    store.all("SELECT deployment_id FROM steps").map((row) => row.deployment_id),
    [6],
  );
});

for (const state of ["queued", "running", "interrupted"]) {
  test(`an old deployment that is ${state} is not pruned`, (t) => {
    const store = temporaryStore(t);
    addDeployments(store, 1_005, "succeeded");
    store.transaction(() => store.run("UPDATE deployments SET state = ? WHERE id = 2", state));
    prune(store);
    assert.equal(findDeployment(store, 2)?.state, state);
    assert.equal(findDeployment(store, 1), null);
  });
}

test("a long history is pruned a part at a time, so that no deployment waits for it", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 2_200, "superseded");
  const counts = [1, 2, 3, 4].map(() => {
    prune(store);
    return countOf(store, "deployments");
  });
  assert.deepEqual(counts, [1_700, 1_200, 1_000, 1_000]);
});

test("ids of pruned deployments are not reused", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 3, "succeeded");
  store.transaction(() => store.run("DELETE FROM deployments"));
  assert.equal(store.transaction(() => recordPush(store, pushOf())).deployment.id, 4);
});

test("the newest 50,000 deliveries are kept", (t) => {
  const store = temporaryStore(t);
  addDeliveries(store, 50_600);
  for (let count = 0; count < 3; count += 1) prune(store);
  assert.equal(countOf(store, "deliveries"), 50_000);
  assert.equal(store.get("SELECT 1 FROM deliveries WHERE digest = 'delivery 599'"), undefined);
});

test("a flood of pushes makes nobody forget what is live and what was deployed last", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 1_010, "superseded");
  store.transaction(() => {
    store.run("UPDATE deployments SET state = 'succeeded' WHERE id <= 3");
    store.run("UPDATE deployments SET trigger = 'rollback' WHERE id = 3");
  });
  prune(store);
  const kept = store.all("SELECT id FROM deployments ORDER BY id LIMIT 3").map(({ id }) => id);
  assert.deepEqual(kept, [2, 3, 11]);
});

function prune(store: Store): void {
  store.transaction(() => pruneHistory(store));
}

function deploymentOf(store: Store, id: number) {
  const deployment = findDeployment(store, id);
  assert.ok(deployment);
  return deployment;
}

function addDeployments(store: Store, count: number, state: string): void {
  store.transaction(() => {
    for (let id = 1; id <= count; id += 1) {
      recordPush(store, pushOf());
      store.run("UPDATE deployments SET state = ? WHERE id = ?", state, id);
    }
  });
}

/** Each a millisecond younger than the one before. */
function addDeliveries(store: Store, count: number): void {
  store.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      store.run(
        "INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms) VALUES ($project, ?, 1, 'main', 'a', ?)",
        `delivery ${index}`,
        index,
      );
    }
  });
}

function asRow(first: number, n: number) {
  return Object.assign(Object.create(null), { first, n });
}
