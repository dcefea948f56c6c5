import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { makeMachine, type RunningRole } from "../../harness/machine.ts";
import { readDeployments } from "../../harness/records.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

async function start(t: TestContext) {
  const machine = makeMachine(t);
  machine.addProject("shop", temporaryDirectory(t));
  return { machine, front: await machine.start("front") };
}

const push = async (service: RunningRole) =>
  (await fetch(service.urlOf("shop"), { method: "POST", ...githubPush() })).status;

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`of two front each push is recorded, also after ${signal} of one`, async (t) => {
    const { machine, front: first } = await start(t);
    const second = await machine.start("front");
    assert.deepEqual([await push(first), await push(second)], [202, 202]);
    await second.end(signal);
    const run = await machine.start("run");
    assert.equal(await push(first), 202);
    await until("all are recorded", () => readDeployments(run.statePath).length === 3);
  });
}

test("a push is recorded although front never reaches the socket of run", async (t) => {
  const { machine, front } = await start(t);
  const env = { FRONT_SOCKET: join(temporaryDirectory(t), "missing", "front.sock") };
  assert.equal(await push(front), 202);
  const run = await machine.start("run", env);
  await until("it is recorded", () => readDeployments(run.statePath).length === 1);
});
