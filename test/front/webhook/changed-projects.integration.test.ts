import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { makeCheckout, makeMachine, type RunningRole } from "../../harness/machine.ts";
import { readDeployments } from "../../harness/records.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { until } from "../../harness/until.ts";

async function push(service: RunningRole, ref = "refs/heads/main"): Promise<string> {
  const response = await fetch(service.urlOf("shop"), { method: "POST", ...githubPush({ ref }) });
  const body = (await response.json()) as { status?: string; reason?: string };
  return body.status === "ignored" ? String(body.reason) : String(response.status);
}

const untilRecorded = ({ statePath }: RunningRole, count: number) =>
  until("all are recorded", () => readDeployments(statePath).length === count);

test("a push is not lost if only front knows the new settings of its project", async (t) => {
  const machine = makeMachine(t);
  const repoPath = makeCheckout(t);
  machine.addProject("shop", repoPath, { BRANCH: "main" });
  const [front, run] = await Promise.all([machine.start("front"), machine.start("run")]);
  assert.equal(await push(front), "202");
  run.child.kill("SIGSTOP");
  machine.addProject("shop", repoPath, { BRANCH: "master" });
  await until("front knows", async () => (await push(front, "refs/heads/master")) === "202");
  run.child.kill("SIGCONT");
  await untilRecorded(run, 2);
  assert.equal(readDeployments(run.statePath)[1]?.ref, "refs/heads/master");
});

test("a push of a project that was removed while run was down waits for its return", async (t) => {
  const machine = makeMachine(t);
  const repoPath = makeCheckout(t);
  machine.addProject("shop", repoPath);
  const front = await machine.start("front");
  const run = await machine.start("run");
  assert.equal(await push(front), "202");
  await untilRecorded(run, 1);
  await run.end();
  assert.equal(await push(front), "202");
  rmSync(join(machine.projectsPath, "shop.env"));
  const next = await machine.start("run");
  await untilRecorded(next, 2);
  machine.addProject("shop", repoPath);
  await until("it was started", () => next.log.lines.some(({ deployment }) => deployment === 2));
});

test("pushes of two front are recorded, also if one is killed or never reaches run", async (t) => {
  const machine = makeMachine(t);
  machine.addProject("shop", makeCheckout(t));
  const first = await machine.start("front");
  const second = await machine.start("front");
  assert.deepEqual([await push(first), await push(second)], ["202", "202"]);
  await second.end("SIGKILL");
  const env = { FRONT_SOCKET: join(temporaryDirectory(t), "missing", "front.sock") };
  const run = await machine.start("run", env);
  assert.equal(await push(first), "202");
  await untilRecorded(run, 3);
});
