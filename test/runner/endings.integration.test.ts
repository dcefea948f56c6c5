import assert from "node:assert/strict";
import { constants } from "node:os";
import { test } from "node:test";
import { createTestRunner } from "../harness/runs.ts";

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
