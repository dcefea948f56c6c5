import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { groupsOf, readExitCode, signalGroup, startSupervisor } from "../../src/runner/supervisor.ts";
import { createTestRunner, deploymentWith } from "../harness/runs.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const { PATH } = process.env;

test("a supervisor whose service dies before its go-ahead starts no script", (t) => {
  const place = temporaryDirectory(t);
  const [script, mark] = [join(place, "deploy.sh"), join(place, "mark")];
  writeScript(script, `#!/bin/sh\ntouch ${mark}\n`);
  const lockFd = openSync(join(place, "lock"), "w", 0o600);
  t.after(() => closeSync(lockFd));
  const supervisor = join(import.meta.dirname, "../../src/runner/supervisor.sh");
  // Nobody is at the other end of its standard input any more, while what it says is still read.
  const { status, stdout } = spawnSync(supervisor, [place, script], {
    stdio: ["ignore", "pipe", "pipe", lockFd],
    encoding: "utf8",
  });
  assert.match(stdout, /^ready\n/);
  assert.equal(status, 75);
  assert.ok(!existsSync(mark));
});

test("a script cannot write to the lock that it holds", async (t) => {
  const place = temporaryDirectory(t);
  const runs = await startSupervisor(place, ["/bin/sh", "-c", "head -c 9 /dev/zero >&3; exit $?"], {
    cwd: place,
    env: { PATH: PATH ?? "" },
  });
  runs.startScript();
  await until("the script has ended", () => readExitCode(place) !== null);
  assert.notEqual(readExitCode(place), 0);
  assert.equal(statSync(join(place, "lock")).size, 0);
});

test("a run's processes are found by all marks in their environment", async (t) => {
  const repoPath = "/srv/the app of bücher/東京";
  const marks = [
    { DEPLOY_ID: "70001", REPO_PATH: repoPath },
    { DEPLOY_ID: "700010", REPO_PATH: repoPath },
    { DEPLOY_ID: "70001", REPO_PATH: "/srv/another" },
    { NOT_DEPLOY_ID: "70001", REPO_PATH: repoPath },
  ];
  const children = marks.map((env) =>
    spawn("sleep", ["600"], { env: { PATH, ...env }, stdio: "ignore", detached: true }),
  );
  t.after(() => children.map((child) => child.kill("SIGKILL")));
  await Promise.all(children.map((child) => once(child, "spawn")));
  assert.deepEqual(groupsOf(70_001, repoPath), [children[0]?.pid]);
});

test("a run whose supervisor is gone is interrupted when its last process has ended", async (t) => {
  const { run, group } = await adoptRest(t);
  signalGroup(group, "SIGKILL");
  assert.equal((await run.ended).state, "interrupted");
});

test("a run whose supervisor has ended before the script began, was none", async (t) => {
  const { run, group } = await adoptRest(t, false);
  signalGroup(group, "SIGKILL");
  assert.equal((await run.ended).state, "not_started");
});

test("an adopted run is ended with its whole group, also if its supervisor is gone", async (t) => {
  const { run, group } = await adoptRest(t);
  run.end("cancelled", 100);
  assert.equal((await run.ended).state, "cancelled");
  assert.throws(() => process.kill(-group, 0), { code: "ESRCH" });
});

/** Adopts run 1, of whose process group only a process that holds its lock is left. */
async function adoptRest(t: TestContext, hasBegun = true) {
  const own = createTestRunner(t);
  const directory = join(own.statePath, "runs/1");
  mkdirSync(directory, { recursive: true });
  const begin = hasBegun ? 'echo $$ >"$1/pid"' : ":";
  const text = `exec 3>"$1/lock"; flock 3; mkfifo "$1/output"; ${begin}; sleep 300 & echo held; wait`;
  const env = { PATH, DEPLOY_ID: "1", REPO_PATH: own.repoPath };
  const supervisor = spawn("sh", ["-c", text, "sh", directory], { env, detached: true });
  const group = supervisor.pid ?? assert.fail();
  t.after(() => signalGroup(group, "SIGKILL"));
  await once(supervisor.stdout, "data");
  supervisor.kill("SIGKILL");
  await once(supervisor, "exit");
  const adoption = await own.runner.adopt(deploymentWith(1));
  return { group, run: adoption.kind === "alive" ? adoption.run : assert.fail(adoption.kind) };
}
