import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { groupsOf, runDirectory, startSupervisor } from "../../src/runner/supervisor.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

test("a supervisor whose service dies before its go-ahead starts no script", (t) => {
  const { directory, script, mark } = makeRun(t);
  const lockFd = openSync(directory.lockPath, "w", 0o600);
  t.after(() => closeSync(lockFd));
  const supervisor = join(import.meta.dirname, "../../src/runner/supervisor.sh");
  // Nobody is at the other end of its standard input any more, while what it says is still read.
  const stdio = ["ignore", "pipe", "pipe", lockFd] as const;
  const { status, stdout } = spawnSync(supervisor, [directory.path, script], {
    stdio: [...stdio],
    encoding: "utf8",
  });
  assert.match(stdout, /^ready\n/);
  assert.equal(status, 75);
  assert.ok(!existsSync(mark));
});

test("no second supervisor gets ready while the lock of a run is held", async (t) => {
  const { directory, script } = makeRun(t);
  const first = await startSupervisor({ ...started(t), directory, command: [script] });
  t.after(first.dismiss);
  await assert.rejects(
    startSupervisor({ ...started(t), directory, command: [script] }),
    /its lock or the pipe for its output could not be set up: flock did not get the lock, another process may hold it/,
  );
});

const repoPath = "/srv/the app of bücher/東京";

test("a run's processes are found by all marks in their environment", async (t) => {
  const { pid } = await startMarked(t, { DEPLOY_ID: "70001", REPO_PATH: repoPath }, true);
  await startMarked(t, { DEPLOY_ID: "700010", REPO_PATH: repoPath });
  await startMarked(t, { DEPLOY_ID: "70001", REPO_PATH: "/srv/another" });
  await startMarked(t, { NOT_DEPLOY_ID: "70001", REPO_PATH: repoPath });
  assert.deepEqual(groupsOf(70_001, repoPath), [pid]);
});

/** A run whose script leaves a mark. */
function makeRun(t: TestContext) {
  const place = temporaryDirectory(t);
  const directory = runDirectory(place, 1);
  mkdirSync(directory.path, { recursive: true });
  const script = join(place, "deploy.sh");
  const mark = join(place, "mark");
  writeScript(script, `#!/bin/sh\ntouch ${mark}\n`);
  return { directory, script, mark };
}

function started(t: TestContext) {
  return { cwd: temporaryDirectory(t), environment: { PATH: process.env.PATH ?? "" } };
}

async function startMarked(
  t: TestContext,
  marks: Record<string, string>,
  detached = false,
): Promise<ChildProcess> {
  const env = { PATH: process.env.PATH, ...marks };
  const child = spawn("sleep", ["600"], { env, stdio: "ignore", detached });
  t.after(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child;
}
