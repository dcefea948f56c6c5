import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Run } from "../../src/deployments/deployment.ts";
import { signalGroup } from "../../src/runner/supervisor.ts";
import { createTestRunner, deploymentWith, type TestRunner } from "../harness/runs.ts";
import { until } from "../harness/until.ts";

const outOfSightMs = 100;

test("an adopted run without a visible process runs again before its time-out", async (t) => {
  const own = createTestRunner(t, { outOfSightMs });
  await holdLock(t, own, {});
  const ending = await (await adopt(own)).ended;
  assert.equal(ending.state, "interrupted");
  own.runner.tidy(1);
  assert.equal((await own.run("#!/bin/sh\n", 1)).state, "succeeded");
});

test("an adopted run has that long even if the time-out of a deployment is shorter", async (t) => {
  const own = createTestRunner(t, { outOfSightMs: 1_500, deployTimeoutMs: 100 });
  await holdLock(t, own, {});
  assert.equal((await (await adopt(own)).ended).state, "interrupted");
});

test("a run whose supervisor is gone is waited for while a process of it is visible", async (t) => {
  const own = createTestRunner(t, { outOfSightMs });
  const holder = await holdLock(t, own, { DEPLOY_ID: "1", REPO_PATH: own.repoPath });
  const run = await adopt(own);
  let hasEnded = false;
  void run.ended.then(() => {
    hasEnded = true;
  });
  const startMs = performance.now();
  await until("it would have been ended", () => performance.now() - startMs > 5 * outOfSightMs);
  assert.equal(hasEnded, false);
  holder.kill("SIGKILL");
  assert.equal((await run.ended).state, "interrupted");
});

test("an adopted run is ended with its whole group, also if its supervisor is gone", async (t) => {
  const own = createTestRunner(t, { outOfSightMs });
  const { run, group } = await adoptRest(t, own);
  run.end("cancelled", 100);
  assert.equal((await run.ended).state, "cancelled");
  assert.throws(() => process.kill(-group, 0), { code: "ESRCH" });
});

/** Adopts run 1, of whose process group only a process that holds its lock is left. */
async function adoptRest(t: TestContext, own: TestRunner) {
  const directory = join(own.statePath, "runs/1");
  mkdirSync(directory, { recursive: true });
  const text = `exec 3>"$1/lock"; flock 3; mkfifo "$1/output"; echo $$ >"$1/pid"; sleep 300 & echo held; wait`;
  const env = { PATH: process.env.PATH, DEPLOY_ID: "1", REPO_PATH: own.repoPath };
  const supervisor = spawn("sh", ["-c", text, "sh", directory], { env, detached: true });
  const group = supervisor.pid ?? assert.fail();
  t.after(() => signalGroup(group, "SIGKILL"));
  await once(supervisor.stdout, "data");
  supervisor.kill("SIGKILL");
  await once(supervisor, "exit");
  return { run: await adopt(own), group };
}

/** A process with `marks` in its environment that holds the lock of deployment 1, the rest of which is gone. */
async function holdLock(t: TestContext, { statePath }: TestRunner, marks: Record<string, string>) {
  const directory = join(statePath, "runs/1");
  mkdirSync(directory, { recursive: true });
  const text = 'exec 3>"$1/lock"; flock 3; mkfifo "$1/output"; echo held; exec sleep 300';
  const env = { PATH: process.env.PATH, ...marks };
  const holder = spawn("sh", ["-c", text, "sh", directory], { env });
  t.after(() => holder.kill("SIGKILL"));
  await once(holder.stdout, "data");
  return holder;
}

async function adopt({ runner }: TestRunner): Promise<Run> {
  const adoption = await runner.adopt(deploymentWith(1));
  assert.equal(adoption.kind, "alive");
  return adoption.kind === "alive" ? adoption.run : assert.fail();
}
