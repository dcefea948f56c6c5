import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentState } from "../../src/deployments/deployment.ts";
import { recordPush } from "../../src/deployments/queue.ts";
import { findDeployment, IllegalTransition, transition } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { pushOf, temporaryStore } from "../harness/store.ts";

/** Written down a second time on purpose: the table in src/ is held to this one. */
const legal: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  queued: ["running", "superseded", "cancelled"],
  running: ["succeeded", "failed", "timed_out", "cancelled", "interrupted", "skipped", "queued"],
  interrupted: ["queued", "superseded", "failed"],
  failed: ["queued"],
  timed_out: ["queued"],
  cancelled: ["queued"],
  succeeded: [],
  superseded: [],
  skipped: [],
};
const states = Object.keys(legal) as readonly DeploymentState[];

test("a deployment goes from state to state only as the table says", (t) => {
  const store = temporaryStore(t);
  for (const from of states) {
    for (const to of states) {
      const id = store.transaction(() => recordPush(store, pushOf())).deployment.id;
      const attempt = () => store.transaction(() => transition(store, { id, state: from }, to));
      store.run("UPDATE deployments SET state = ? WHERE id = ?", from, id);
      if (legal[from].includes(to)) attempt();
      else assert.throws(attempt, IllegalTransition, `${from} > ${to}`);
      assert.equal(findDeployment(store, id)?.state, legal[from].includes(to) ? to : from);
      store.run("DELETE FROM deployments");
    }
  }
});

test("a deployment that is in another state by now keeps it", (t) => {
  const store = temporaryStore(t);
  const id = deploymentIn(store, "succeeded");
  const attempt = () => store.transaction(() => transition(store, { id, state: "running" }, "failed"));
  assert.throws(attempt, IllegalTransition);
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

function deploymentIn(store: Store, state: DeploymentState): number {
  return store.transaction(() => {
    const { deployment } = recordPush(store, pushOf());
    store.run("UPDATE deployments SET state = ? WHERE id = ?", state, deployment.id);
    return deployment.id;
  });
}
