import "../harness/environment.ts";
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { ageMs, findProcessesOf, hasEnvironment, runMarks } from "../../src/runner/processes.ts";
import { until } from "../harness/until.ts";

const repoPath = "/srv/the app";

test("a run's processes are found by the marks in their environment, with commands", async (t) => {
  const { pid } = await start(t, { DEPLOY_ID: "70001", REPO_PATH: repoPath });
  await start(t, { DEPLOY_ID: "700010", REPO_PATH: repoPath });
  await start(t, { DEPLOY_ID: "70001", REPO_PATH: "/srv/another" });
  await start(t, { NOT_DEPLOY_ID: "70001", REPO_PATH: repoPath });
  assert.deepEqual(findProcessesOf(70_001, repoPath), [{ pid, command: "sleep 600" }]);
});

test("a run's processes are found if the repository's path is not ASCII", async (t) => {
  const path = "/srv/bücher/東京";
  const { pid = 0 } = await start(t, { DEPLOY_ID: "70004", REPO_PATH: path });
  assert.equal(hasEnvironment(pid, runMarks(70_004, path)), true);
  assert.deepEqual(findProcessesOf(70_004, path), [{ pid, command: "sleep 600" }]);
});

test("a process without all marks, or that is gone, does not match", async (t) => {
  const child = await start(t, { DEPLOY_ID: "70002", REPO_PATH: repoPath });
  const pid = child.pid ?? 0;
  assert.ok(hasEnvironment(pid, ["DEPLOY_ID=70002", `REPO_PATH=${repoPath}`]));
  assert.ok(!hasEnvironment(pid, ["DEPLOY_ID=70002", "REPO_PATH=/srv"]));
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok(!hasEnvironment(pid, ["DEPLOY_ID=70002"]));
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
  const zombie = Number(chunk);
  await until(
    "the child is dead",
    () => !findProcessesOf(70_003, repoPath).some(({ pid }) => pid === zombie),
  );
  process.kill(zombie, 0);
});

test("the age of a process does not depend on the wall clock", async (t) => {
  const { pid = 0 } = await start(t, {});
  const startMs = performance.now();
  await until("some time has gone", () => performance.now() - startMs > 500);
  const age = ageMs(pid);
  assert.ok(age >= 450 && age <= performance.now() - startMs + 1_000, `${age} ms`);
  assert.equal(ageMs(2 ** 30), 0);
});

async function start(t: TestContext, marks: Record<string, string>): Promise<ChildProcess> {
  const child = spawn("sleep", ["600"], { env: { PATH: process.env.PATH, ...marks }, stdio: "ignore" });
  t.after(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child;
}
