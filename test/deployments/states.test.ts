import assert from "node:assert/strict";
import { test } from "node:test";
import { type DeploymentState, isFinished } from "../../src/deployments/deployment.ts";
import { recordPush } from "../../src/deployments/queue.ts";
import { findDeployment, transition } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { pushOf, temporaryStore } from "../harness/store.ts";

const states: readonly DeploymentState[] = [
  "queued",
  "running",
  "succeeded",
  "failed",
  "timed_out",
  "cancelled",
  "superseded",
  "interrupted",
];

/** Written down a second time on purpose: the table in src/ is held to this one. */
const legal = new Set([
  "queued > running",
  "queued > superseded",
  "queued > cancelled",
  "running > succeeded",
  "running > failed",
  "running > timed_out",
  "running > cancelled",
  "running > interrupted",
  "running > queued",
  "interrupted > queued",
  "interrupted > superseded",
  "interrupted > failed",
  "failed > queued",
  "timed_out > queued",
  "cancelled > queued",
]);

for (const from of states) {
  for (const to of states) {
    const isLegal = legal.has(`${from} > ${to}`);
    test(`a deployment that is ${from} ${isLegal ? "can become" : "never becomes"} ${to}`, (t) => {
      const store = temporaryStore(t);
      const id = deploymentIn(store, from);
      const attempt = () => store.transaction(() => transition(store, { id, state: from }, to));
      if (isLegal) attempt();
      else assert.throws(attempt, /cannot go from/);
      assert.equal(findDeployment(store, id)?.state, isLegal ? to : from);
    });
  }
}

test("a deployment that is in another state by now keeps it", (t) => {
  const store = temporaryStore(t);
  const id = deploymentIn(store, "succeeded");
  const attempt = () => store.transaction(() => transition(store, { id, state: "running" }, "failed"));
  assert.throws(attempt, /is not running any more/);
  assert.equal(findDeployment(store, id)?.state, "succeeded");
});

test("a finished state records the time, and a return to the queue clears it", (t) => {
  const store = temporaryStore(t);
  const id = deploymentIn(store, "running");
  store.transaction(() => transition(store, { id, state: "running" }, "failed", { exitCode: 3 }));
  assert.equal(findDeployment(store, id)?.exitCode, 3);
  assert.ok((findDeployment(store, id)?.finishedAtMs ?? 0) > 0);
  store.transaction(() => transition(store, { id, state: "failed" }, "queued"));
  assert.equal(findDeployment(store, id)?.exitCode, null);
  assert.equal(findDeployment(store, id)?.finishedAtMs, null);
});

test("queued, running and interrupted are the states that are not finished", () => {
  assert.deepEqual(
    states.filter((state) => !isFinished(state)),
    ["queued", "running", "interrupted"],
  );
});

function deploymentIn(store: Store, state: DeploymentState): number {
  return store.transaction(() => {
    const { deployment } = recordPush(store, pushOf());
    store.run("UPDATE deployments SET state = ? WHERE id = ?", state, deployment.id);
    return deployment.id;
  });
}
