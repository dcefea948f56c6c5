import assert from "node:assert/strict";
import { constants } from "node:os";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { isGone, type LogLine } from "../harness/processes.ts";
import { createTestRunner } from "../harness/runs.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

test("an exit code is recorded unchanged, and one of a signal or the shell is explained", async (t) => {
  const runner = createTestRunner(t);
  for (const [code, problem, explained] of [
    [0, undefined, ""],
    [1, "script_failed", "exit code 1."],
    [126, "script_failed", "could not be run"],
    [127, "script_failed", "not installed"],
    [128 + constants.signals.SIGKILL, "script_killed", "SIGKILL"],
  ] as const) {
    const ending = await runner.run(`#!/bin/sh\nprintf '\\033[31mbye\\033[0m\\n\\n'\nexit ${code}\n`);
    assert.deepEqual([ending.state, ending.exitCode], [code === 0 ? "succeeded" : "failed", code]);
    assert.equal(ending.problem?.code, problem);
    assert.ok((ending.problem?.detail ?? "").includes(explained));
    if (code !== 0) assert.ok(ending.problem?.detail.endsWith("Its last line: bye"));
  }
});

test("a script whose whole process group is killed from outside has failed", async (t) => {
  const ending = await createTestRunner(t).run("#!/bin/sh\necho so far\nkill -KILL -$PPID\n");
  assert.deepEqual([ending.state, ending.exitCode, ending.problem?.code], ["failed", null, "script_killed"]);
});

test("a script that hangs is reported with its step and last line, also when it is adopted", async (t) => {
  const script = "#!/bin/sh\necho '==> Pull'\necho asking\nsleep 600\n";
  const first = await startService(t, { script, env: { DEPLOY_SILENCE: "1s", SHUTDOWN_GRACE: "0" } });
  await deliver(first.url, githubPush());
  // Before it has printed its lines, it may be silent as well.
  const isSilent = ({ event, lastLine }: LogLine) => event === "deployment.silent" && lastLine === "asking";
  const { deployment, step, silentMs, level } = await first.log.waitFor(isSilent);
  assert.deepEqual([deployment, step, level], [1, "Pull", "warn"]);
  assert.ok(Number(silentMs) >= 1_000, `${silentMs} ms`);
  await first.log.waitFor((line) => isSilent(line) && Number(line.silentMs) >= 2_000);
  await first.end("SIGKILL");
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "deployment.silent");
  await second.end();
});

const loop = "while :; do sleep 0.02; done";
const stubborn = `trap "" TERM; echo $$; ${loop}`;

test("a script that is ended gets SIGTERM, and time to clean up", async (t) => {
  const script = `trap 'echo cleaning; sleep 0.3; echo clean; exit 5' TERM; echo up; ${loop}`;
  const { detail, lines } = await endEarly(t, script, { graceMs: 60_000 });
  assert.deepEqual(lines.slice(-2), ["cleaning", "clean"]);
  assert.match(detail, /It exited on SIGTERM\. Its last line: clean$/);
});

test("a script that ignores SIGTERM is killed after the grace period, with its children", async (t) => {
  const script = `sh -c '${stubborn}' &\n(sh -c '${stubborn}' &)\n${stubborn}`;
  const { detail, tookMs, lines } = await endEarly(t, script, { lineCount: 3, graceMs: 500 });
  assert.ok(tookMs >= 500);
  assert.match(detail, /It did not exit on SIGTERM and was killed\. Its last line: \d+$/);
  await until("all are gone", () => lines.every((pid) => isGone(Number(pid))));
});

test("a run can be cancelled, and the first reason to end it counts", async (t) => {
  const { run } = await createTestRunner(t).start("#!/bin/sh\nsleep 600\n");
  run.end("cancelled", 30_000);
  run.end("interrupted", 0);
  assert.deepEqual(await run.ended, { state: "cancelled", exitCode: null, problem: null });
});

/** Ends a script when it has printed so many lines. */
async function endEarly(
  t: TestContext,
  script: string,
  { lineCount = 1, graceMs }: { readonly lineCount?: number; readonly graceMs: number },
) {
  const runner = createTestRunner(t);
  const { run } = await runner.start(`#!/bin/sh\n${script}\n`);
  await until("the script runs", () => runner.lines.length >= lineCount);
  const startMs = performance.now();
  run.end("interrupted", graceMs);
  const ending = await run.ended;
  const tookMs = performance.now() - startMs;
  const detail = ("problem" in ending && ending.problem?.detail) || "";
  return { detail, tookMs, lines: runner.lines };
}
