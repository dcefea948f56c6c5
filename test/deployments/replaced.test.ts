import assert from "node:assert/strict";
import { test } from "node:test";
import { pino } from "pino";
import { createQueue } from "../../src/deployments/queue.ts";
import { findDeployment } from "../../src/deployments/record.ts";
import { createTestRunner } from "../harness/runs.ts";
import { pushOf, temporaryStore } from "../harness/store.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("an instance that is to be replaced records but starts nothing, until it is not any more", async (t) => {
  const { runner, repoPath } = createTestRunner(t);
  writeScript(`${repoPath}/deploy.sh`, "#!/bin/sh\n");
  const store = temporaryStore(t);
  const state = { isReplaced: true };
  const isReplaced = () => state.isReplaced;
  const queue = createQueue({ store, runner, isReplaced, log: pino({ level: "silent" }) });
  t.after(() => queue.stop(0));
  queue.takeOver();
  await until("it is idle", () => !queue.isBusy());
  const { kind, deployment } = await queue.accept(pushOf());
  assert.equal(kind, "accepted");
  queue.wake();
  assert.deepEqual([deployment.state, queue.isBusy()], ["queued", false]);
  state.isReplaced = false;
  queue.wake();
  assert.equal(queue.isBusy(), true);
  await until("it ran", () => findDeployment(store, deployment.id)?.state === "succeeded");
});
