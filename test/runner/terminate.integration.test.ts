import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Ending } from "../../src/deployments/deployment.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { isGone } from "../harness/processes.ts";
import { createTestRunner } from "../harness/runs.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/** Long enough for a script to set its traps on a busy machine. */
const quickTimeout = { deployTimeoutMs: 2_000, timeoutGraceMs: 500 };
const longGrace = { deployTimeoutMs: 2_000, timeoutGraceMs: 60_000 };

test("a script that times out gets SIGTERM, and time to clean up", async (t) => {
  const runner = createTestRunner(t, longGrace);
  const ending = await runner.run(
    "#!/bin/sh\ntrap 'echo cleaning; sleep 0.3; echo clean; exit 5' TERM\nwhile :; do sleep 0.02; done\n",
  );
  assert.deepEqual([ending.state, ending.exitCode], ["timed_out", null]);
  assert.deepEqual(runner.lines.slice(-2), ["cleaning", "clean"]);
  assert.match(detailOf(ending), /longer than 2 s, .+ It exited on SIGTERM\. Its last line: clean/);
});

test("a script that ignores SIGTERM is killed after the grace period, not before", async (t) => {
  const runner = createTestRunner(t, quickTimeout);
  const startMs = performance.now();
  const ending = await runner.run("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.02; done\n");
  assert.ok(performance.now() - startMs >= 2_500);
  assert.equal(ending.state, "timed_out");
  assert.match(detailOf(ending), /It did not exit on SIGTERM and was killed\. It printed nothing\.$/m);
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

test("a deployment that ended while the whole service slept has not timed out", async (t) => {
  const script = "#!/bin/sh\nsleep 1\ntouch done\n";
  const service = await startService(t, { script, env: { DEPLOY_TIMEOUT: "2s" } });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ event }) => event === "deployment.started");
  service.child.kill("SIGSTOP");
  const startMs = performance.now();
  const isDone = () => existsSync(join(service.repoPath, "done"));
  await until("the time-out is over", () => performance.now() - startMs > 2_500 && isDone());
  service.child.kill("SIGCONT");
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
});

function detailOf({ problem }: Ending): string {
  return problem?.detail ?? "";
}
