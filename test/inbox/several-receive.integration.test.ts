import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../harness/delivery.ts";
import { readDeployments } from "../harness/records.ts";
import { makeMachine, type RunningRole } from "../harness/roles.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

async function start(t: TestContext) {
  const machine = makeMachine(t);
  machine.addProject("shop", temporaryDirectory(t));
  return { machine, receive: await machine.start("receive") };
}

const push = async (service: RunningRole) =>
  (await fetch(service.urlOf("shop"), { method: "POST", ...githubPush() })).status;

for (const signal of ["SIGTERM", "SIGKILL"] as const) {
  test(`of two receive one offers the inbox, also after ${signal} of the other`, async (t) => {
    const { machine, receive: first } = await start(t);
    const second = await machine.start("receive");
    assert.deepEqual([await push(first), await push(second)], [202, 202]);
    await second.end(signal);
    const run = await machine.start("run");
    assert.equal(await push(first), 202);
    await until("all are recorded", () => readDeployments(run.statePath).length === 3);
  });
}

test("an inbox whose socket cannot be made yet is offered as soon as it can", async (t) => {
  const machine = makeMachine(t);
  machine.addProject("shop", temporaryDirectory(t));
  const directory = join(temporaryDirectory(t), "sockets");
  const env = { INBOX_SOCKET: join(directory, "inbox.sock") };
  const receive = await machine.start("receive", env);
  await receive.log.waitFor(({ event }) => event === "system.short");
  assert.equal(await push(receive), 202);
  mkdirSync(directory);
  const run = await machine.start("run", env);
  await until("it is recorded", () => readDeployments(run.statePath).length === 1);
});

test("receive and run with one STATE_PATH by mistake still record each push", async (t) => {
  const { machine, receive } = await start(t);
  await machine.start("run", { STATE_PATH: receive.statePath });
  assert.equal(await push(receive), 202);
  await until("it is recorded", () => readDeployments(receive.statePath).length === 1);
});
