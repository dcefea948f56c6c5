import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../src/deployments/execute.ts";
import { recordPush } from "../../src/deployments/queue.ts";
import { claimNext } from "../../src/deployments/store.ts";
import { createHealthCheck } from "../../src/run.ts";
import { pushOf, temporaryStore } from "../harness/store.ts";
import { until } from "../harness/until.ts";

const atOnce = { probeIntervalMs: 0, overdueMs: 10 };

test("a run long past its time-out makes the service unhealthy until it is gone", async (t) => {
  const store = temporaryStore(t);
  const findFault = createHealthCheck(store, () => 10, atOnce);
  assert.equal(findFault(), null);
  store.transaction(() => recordPush(store, pushOf()));
  const deployment = store.transaction(() => claimNext(store));
  assert.ok(deployment);
  assert.equal(findFault(), null, "it has only just been seen");
  await until("the run is overdue", () => /far past its time-out/.test(findFault() ?? ""));
  store.transaction(() => settle(store, deployment, { state: "succeeded", exitCode: 0, problem: null }));
  assert.equal(findFault(), null);
});
