import assert from "node:assert/strict";
import { constants } from "node:os";
import { test } from "node:test";
import { endedEarly, endingOf, killed } from "../../src/runner/ending.ts";
import { createTestRunner } from "../harness/runs.ts";

const signalsOfShell = [
  "SIGHUP",
  "SIGINT",
  "SIGQUIT",
  "SIGILL",
  "SIGTRAP",
  "SIGABRT",
  "SIGBUS",
  "SIGFPE",
  "SIGKILL",
  "SIGUSR1",
  "SIGSEGV",
  "SIGUSR2",
  "SIGPIPE",
  "SIGALRM",
  "SIGTERM",
] as const;

test("every exit code from 0 to 255 is recorded unchanged", async (t) => {
  const runner = createTestRunner(t);
  for (let code = 0; code <= 255; code += 1) {
    const ending = await runner.run(`#!/bin/sh\necho bye\nexit ${code}\n`);
    assert.deepEqual([ending.state, ending.exitCode], [code === 0 ? "succeeded" : "failed", code]);
    assert.equal(ending.problem?.code, codeOf(code), `exit code ${code}`);
  }
});

for (const signal of signalsOfShell) {
  test(`a script killed by ${signal} has failed, and the message names the signal`, async (t) => {
    const ending = await createTestRunner(t).run(`#!/bin/sh\necho so far\nkill -${signal.slice(3)} $$\n`);
    const exitCode = 128 + constants.signals[signal];
    assert.deepEqual([ending.state, ending.exitCode], ["failed", exitCode]);
    assert.equal(
      ending.problem?.detail,
      `deploy.sh, or a command in it, was killed by ${signal} (exit code ${exitCode}). Its last line: so far`,
    );
  });
}

test("a script whose whole process group is killed from outside has failed", async (t) => {
  const runner = createTestRunner(t);
  const ending = await runner.run("#!/bin/sh\necho so far\nkill -KILL -$PPID\n");
  assert.deepEqual([ending.state, ending.exitCode, ending.problem?.code], ["failed", null, "script_killed"]);
  assert.equal(
    ending.problem?.detail,
    "deploy.sh was killed by SIGKILL, for example because memory ran out. Its last line: so far",
  );
});

test("the message of a failure has the exit code and the last line that is not blank", () => {
  assert.equal(
    endingOf(3, ["==> Build", "no space left", "", "  "]).problem?.detail,
    "deploy.sh ended with exit code 3. Its last line: no space left",
  );
  assert.equal(endingOf(1, []).problem?.detail, "deploy.sh ended with exit code 1. It printed nothing.");
});

test("exit codes 126 and 127 are explained", () => {
  assert.match(endingOf(126, []).problem?.detail ?? "", /a command in it could not be run\./);
  assert.match(endingOf(127, []).problem?.detail ?? "", /is not installed or not in the PATH\./);
});

test("a last line cannot control a terminal and is bounded", () => {
  const detail = endingOf(1, [`\u001b[31mred\u001b[0m\u202e ${"x".repeat(5_000)}`]).problem?.detail ?? "";
  assert.match(detail, /Its last line: red {2}x+…$/);
  assert.ok(detail.length < 400);
});

test("a script whose end nobody saw is reported as killed from outside", () => {
  assert.match(killed(null, []).problem?.detail ?? "", /^deploy\.sh was killed from outside/);
});

test("a time-out names the setting, its value, how the script ended and what still runs", () => {
  const survivors = [{ pid: 42, command: "sleep 1000" }];
  const early = {
    timeoutMs: 1_800_000,
    wasForced: true,
    survivors,
    processes: [],
    step: null,
    lastLines: ["pulling"],
  };
  assert.deepEqual(endedEarly({ ...early, reason: "timed_out" }), {
    state: "timed_out",
    exitCode: null,
    problem: {
      code: "deployment_timed_out",
      detail:
        "deploy.sh ran for longer than 30 min, the value of DEPLOY_TIMEOUT. It did not exit on SIGTERM and was killed. These of its processes still run: 42 (sleep 1000). Its last line: pulling",
    },
  });
  const ending = endedEarly({
    ...early,
    reason: "timed_out",
    survivors: [],
    step: "Pull",
    lastLines: [...Array.from({ length: 30 }, (_, index) => `line ${index}`), "", "pulling"],
    processes: ["41 sleeping, 30 min: git fetch", "42 sleeping, 30 min: ssh git@git.example"],
  });
  assert.equal(
    ending.problem?.detail,
    [
      "deploy.sh ran for longer than 30 min, the value of DEPLOY_TIMEOUT. It was in the step Pull. It did not exit on SIGTERM and was killed. Its last line: pulling",
      "Its last lines:",
      ...Array.from({ length: 9 }, (_, index) => `  line ${index + 21}`),
      "  pulling",
      "Its processes at the time-out:",
      "  41 sleeping, 30 min: git fetch",
      "  42 sleeping, 30 min: ssh git@git.example",
    ].join("\n"),
  );
  const asked = endedEarly({ ...early, reason: "interrupted", wasForced: false, survivors: [] });
  assert.equal(
    asked.problem?.detail,
    "Hotpush was stopped while deploy.sh ran; the deployment runs again when Hotpush starts. It exited on SIGTERM. Its last line: pulling",
  );
  assert.equal(endedEarly({ ...early, reason: "cancelled" }).state, "cancelled");
});

/** A shell exits with 128 plus the number of the signal that killed its last command. */
function codeOf(exitCode: number): string | undefined {
  if (exitCode === 0) return undefined;
  const isSignal = Object.values(constants.signals).some((number) => number === exitCode - 128);
  return isSignal ? "script_killed" : "script_failed";
}
