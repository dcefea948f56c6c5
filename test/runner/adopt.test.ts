import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { signalGroup } from "../../src/runner/supervisor.ts";
import { createTestRunner, deploymentWith } from "../harness/runs.ts";
import { until } from "../harness/until.ts";

const outOfSightMs = 100;

test("an adopted run without a visible process runs again before its time-out", async (t) => {
  const { own, run } = await adoptRest(t, false);
  assert.equal((await run.ended).state, "interrupted");
  own.runner.tidy(1);
  assert.equal((await own.run("#!/bin/sh\n", 1)).state, "succeeded");
});

test("a run whose supervisor is gone is waited for while a process of it is visible", async (t) => {
  const { run, group } = await adoptRest(t);
  let hasEnded = false;
  void run.ended.then(() => {
    hasEnded = true;
  });
  const startMs = performance.now();
  await until("it would have been ended", () => performance.now() - startMs > 5 * outOfSightMs);
  assert.equal(hasEnded, false);
  signalGroup(group, "SIGKILL");
  assert.equal((await run.ended).state, "interrupted");
});

test("an adopted run is ended with its whole group, also if its supervisor is gone", async (t) => {
  const { run, group } = await adoptRest(t);
  run.end("cancelled", 100);
  assert.equal((await run.ended).state, "cancelled");
  assert.throws(() => process.kill(-group, 0), { code: "ESRCH" });
});

/** Adopts run 1, of whose process group only a process that holds its lock is left. */
async function adoptRest(t: TestContext, isVisible = true) {
  const own = createTestRunner(t, { outOfSightMs });
  const directory = join(own.statePath, "runs/1");
  mkdirSync(directory, { recursive: true });
  const text = `exec 3>"$1/lock"; flock 3; mkfifo "$1/output"; echo $$ >"$1/pid"; sleep 300 & echo held; wait`;
  const marks = isVisible ? { DEPLOY_ID: "1", REPO_PATH: own.repoPath } : {};
  const env = { PATH: process.env.PATH, ...marks };
  const supervisor = spawn("sh", ["-c", text, "sh", directory], { env, detached: true });
  const group = supervisor.pid ?? assert.fail();
  t.after(() => signalGroup(group, "SIGKILL"));
  await once(supervisor.stdout, "data");
  supervisor.kill("SIGKILL");
  await once(supervisor, "exit");
  const adoption = await own.runner.adopt(deploymentWith(1));
  return { own, group, run: adoption.kind === "alive" ? adoption.run : assert.fail(adoption.kind) };
}
