import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { isGone } from "../harness/processes.ts";
import { createTestRunner } from "../harness/runs.ts";
import { until } from "../harness/until.ts";

const loop = "while :; do sleep 0.02; done";
const stubborn = `trap "" TERM; echo $$; ${loop}`;

test("a script that runs for too long is ended, and the problem says so", async (t) => {
  const ending = await createTestRunner(t, { deployTimeoutMs: 1_000 }).run("#!/bin/sh\nsleep 600\n");
  assert.deepEqual([ending.state, ending.exitCode], ["timed_out", null]);
  assert.match(ending.problem?.detail ?? "", /longer than 1 s, the value of DEPLOY_TIMEOUT\./);
});

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
