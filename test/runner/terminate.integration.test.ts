import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import type { Ending } from "../../src/deployments/deployment.ts";
import { signalGroup } from "../../src/runner/processes.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { isGone } from "../harness/processes.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";
import { createTestRunner } from "../harness/runs.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const quickTimeout = { deployTimeoutMs: 300, timeoutGraceMs: 500 };
const longGrace = { deployTimeoutMs: 300, timeoutGraceMs: 30_000 };

test("a script that times out gets SIGTERM, and time to clean up", async (t) => {
  const runner = createTestRunner(t, longGrace);
  const ending = await runner.run(
    "#!/bin/sh\ntrap 'echo cleaning; sleep 0.3; echo clean; exit 5' TERM\nwhile :; do sleep 0.02; done\n",
  );
  assert.deepEqual([ending.state, ending.exitCode], ["timed_out", null]);
  assert.deepEqual(runner.lines.slice(-2), ["cleaning", "clean"]);
  assert.equal(
    detailOf(ending).split("\n")[0],
    "deploy.sh ran for longer than 300 ms, the value of DEPLOY_TIMEOUT. It exited on SIGTERM. Its last line: clean",
  );
});

test("a script that exits with 0 after its time-out has still timed out", async (t) => {
  const runner = createTestRunner(t, longGrace);
  const ending = await runner.run("#!/bin/sh\ntrap 'exit 0' TERM\nwhile :; do sleep 0.02; done\n");
  assert.equal(ending.state, "timed_out");
});

test("a script that ignores SIGTERM is killed after the grace period, not before", async (t) => {
  const runner = createTestRunner(t, quickTimeout);
  const startMs = performance.now();
  const ending = await runner.run("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.02; done\n");
  assert.ok(performance.now() - startMs >= 800);
  assert.equal(ending.state, "timed_out");
  assert.match(detailOf(ending), /It did not exit on SIGTERM and was killed\. It printed nothing\.$/m);
});

test("a script stopped by a signal is killed as well", async (t) => {
  const ending = await createTestRunner(t, quickTimeout).run("#!/bin/sh\nkill -STOP $$\n");
  assert.equal(ending.state, "timed_out");
});

test("children and grandchildren that ignore SIGTERM are gone too", async (t) => {
  const runner = createTestRunner(t, quickTimeout);
  const stubborn = 'trap "" TERM; echo $$; while :; do sleep 0.02; done';
  await runner.run(
    `#!/bin/sh\nsh -c '${stubborn}' &\n(sh -c '${stubborn}' &)\nwhile :; do sleep 0.02; done\n`,
  );
  assert.equal(runner.lines.length, 2);
  for (const pid of runner.lines) assert.ok(isGone(Number(pid)), `process ${pid} is gone`);
});

test("children that outlive the script are gone before the ending is known", async (t) => {
  const runner = createTestRunner(t, quickTimeout);
  const stubborn = 'trap "" TERM; echo $$; while :; do sleep 0.02; done';
  const ending = await runner.run(`#!/bin/sh\nsh -c '${stubborn}' &\nexec sleep 600\n`);
  assert.match(detailOf(ending), /and was killed/);
  assert.ok(isGone(Number(runner.lines[0])));
});

test("a process that left the group is reported with its id and command", async (t) => {
  const runner = createTestRunner(t, quickTimeout);
  const ending = await runner.run("#!/bin/sh\nsetsid sleep 987 &\nwhile :; do sleep 0.02; done\n");
  const [, pid] = /These of its processes still run: (\d+) \(sleep 987\)\./.exec(detailOf(ending)) ?? [];
  assert.ok(pid, detailOf(ending));
  process.kill(Number(pid), "SIGKILL");
});

test("a run can be cancelled, and the first reason to end it counts", async (t) => {
  const runner = createTestRunner(t);
  const { run } = await runner.start("#!/bin/sh\necho up\nwhile :; do sleep 0.02; done\n");
  await until("the script runs", () => runner.lines.length > 0);
  run.end("cancelled", 30_000);
  run.end("interrupted", 0);
  assert.deepEqual(await run.ended, { state: "cancelled", exitCode: null, problem: null });
});

test("a run that has ended cannot be ended again", async (t) => {
  const runner = createTestRunner(t);
  const { run } = await runner.start("#!/bin/sh\nexit 0\n");
  await run.ended;
  run.end("cancelled", 0);
  assert.equal((await run.ended).state, "succeeded");
});

test("a deployment that ended while the whole service slept has not timed out", async (t) => {
  const script = "#!/bin/sh\nsleep 1\ntouch done\n";
  const service = await startService(t, { script, env: { DEPLOY_TIMEOUT: "2s" } });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  service.child.kill("SIGSTOP");
  const startMs = performance.now();
  await until("the time-out is over", () => performance.now() - startMs > 2_500);
  service.child.kill("SIGCONT");
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
});

test("the service records a time-out and runs the next push", async (t) => {
  const script = "#!/bin/sh\n[ $DEPLOY_ID = 2 ] || sleep 600\n";
  const service = await startService(t, { script, env: { DEPLOY_TIMEOUT: "1s" } });
  await deliver(service.url, githubPush());
  await deliver(service.url, githubPush());
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.timed_out");
  assert.equal((await service.log.waitForEnding(2)).event, "deployment.succeeded");
});

test(
  "a group in which only processes of another user are left causes no error",
  needs("otherUser"),
  async (t) => {
    const pid = await sleeperOfItsOwnGroup(t);
    const terminateUrl = new URL("../../src/runner/processes.ts", import.meta.url);
    const text = `const { signalGroup } = await import("${terminateUrl.href}"); console.log(signalGroup(${pid}, "SIGTERM"))`;
    const [setpriv, ...asNobody] = becomeNobody;
    const argv = [...asNobody, process.execPath, "--input-type=module", "--eval", text];
    const result = spawnSync(setpriv, argv, { encoding: "utf8" });
    assert.equal(result.stdout, "true\n", result.stderr);
    assert.equal(signalGroup(pid, 0), true);
  },
);

test("a group without processes counts as gone", async (t) => {
  const pid = await sleeperOfItsOwnGroup(t);
  process.kill(pid, "SIGKILL");
  await until("it is gone", () => !signalGroup(pid, 0));
});

async function sleeperOfItsOwnGroup(t: TestContext): Promise<number> {
  const child = spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
  t.after(() => child.kill("SIGKILL"));
  await once(child, "spawn");
  return child.pid ?? 0;
}

function detailOf({ problem }: Ending): string {
  return problem?.detail ?? "";
}
