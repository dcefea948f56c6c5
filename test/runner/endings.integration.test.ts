import assert from "node:assert/strict";
import { constants } from "node:os";
import { test } from "node:test";
import { endedEarly } from "../../src/runner/ending.ts";
import { createTestRunner } from "../harness/runs.ts";

test("an exit code is recorded unchanged, and one of a signal or the shell is explained", async (t) => {
  const runner = createTestRunner(t);
  for (const [code, problem, explained] of [
    [0, undefined, ""],
    [1, "script_failed", "exit code 1."],
    [126, "script_failed", "could not be run"],
    [127, "script_failed", "not installed"],
    [128 + constants.signals.SIGKILL, "script_killed", "SIGKILL"],
    [255, "script_failed", "exit code 255."],
  ] as const) {
    const ending = await runner.run(`#!/bin/sh\necho bye\necho\nexit ${code}\n`);
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

test("a last line cannot control a terminal and is bounded", async (t) => {
  const script = `#!/bin/sh\nprintf '\\033[31mred\\033[0m ${"x".repeat(5_000)}\\n'\nexit 1\n`;
  const { problem } = await createTestRunner(t).run(script);
  assert.match(problem?.detail ?? "", /Its last line: red x+…$/);
  assert.ok((problem?.detail ?? "").length < 400);
});

test("a time-out names the setting, the step, how the script ended and what still runs", () => {
  const early = {
    timeoutMs: 1_800_000,
    wasForced: true,
    survivors: [{ pid: 42, command: "sleep 1000" }],
    printed: { step: "Pull", lastLine: "pulling" },
  };
  assert.equal(
    endedEarly({ ...early, reason: "timed_out" }).problem?.detail,
    "deploy.sh ran for longer than 30 min, the value of DEPLOY_TIMEOUT. It was in the step Pull. It did not exit on SIGTERM and was killed. These of its processes still run: 42 (sleep 1000). Its last line: pulling",
  );
  assert.equal(endedEarly({ ...early, reason: "interrupted" }).problem?.code, "deployment_interrupted");
  assert.equal(endedEarly({ ...early, reason: "cancelled" }).state, "cancelled");
});
