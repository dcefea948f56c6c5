import "../harness/environment.ts";
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { ageMs, findProcessesOf } from "../../src/runner/processes.ts";
import { until } from "../harness/until.ts";

const repoPath = "/srv/the app of bücher/東京";

test("a run's processes are found by all marks in their environment, with commands", async (t) => {
  const { pid } = await start(t, { DEPLOY_ID: "70001", REPO_PATH: repoPath }, true);
  await start(t, { DEPLOY_ID: "700010", REPO_PATH: repoPath });
  await start(t, { DEPLOY_ID: "70001", REPO_PATH: "/srv/another" });
  await start(t, { NOT_DEPLOY_ID: "70001", REPO_PATH: repoPath });
  assert.deepEqual(findProcessesOf(70_001, repoPath), [{ pid, group: pid, command: "sleep 600" }]);
});

test("a zombie does not belong to a run", async (t) => {
  // It dies when its parent is no shell any more: that might notice.
  const child = 'until read -r name </proc/$PPID/comm && [ "$name" = sleep ]; do :; done';
  const text = `sh -c '${child}' & echo $!; exec sleep 600`;
  const parent = spawn("sh", ["-c", text], {
    env: { PATH: process.env.PATH, DEPLOY_ID: "70003", REPO_PATH: repoPath },
  });
  t.after(() => parent.kill("SIGKILL"));
  const [chunk] = await once(parent.stdout, "data");
  const isFound = () => findProcessesOf(70_003, repoPath).some(({ pid }) => pid === Number(chunk));
  await until("the child is dead", () => !isFound());
  process.kill(Number(chunk), 0);
});

test("the age of a process does not depend on the wall clock", async (t) => {
  const beforeMs = performance.now();
  const { pid = 0 } = await start(t, {});
  const startMs = performance.now();
  await until("some time has gone", () => performance.now() - startMs > 500);
  const age = ageMs(pid);
  assert.ok(age >= 450 && age <= performance.now() - beforeMs + 50, `${age} ms`);
  assert.equal(ageMs(2 ** 30), 0);
});

async function start(t: TestContext, marks: Record<string, string>, detached = false): Promise<ChildProcess> {
  const env = { PATH: process.env.PATH, ...marks };
  const child = spawn("sleep", ["600"], { env, stdio: "ignore", detached });
  t.after(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child;
}
