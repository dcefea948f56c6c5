import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { untilDeployment } from "../harness/records.ts";
import { letGo, patientScript, type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

/**
 * A state directory that was restored from a backup says that a deployment runs, but has not all files of the run:
 * backups leave out named pipes, and what was written last. Even then, no push may wait for ever.
 */

const [pipe, lock, exit, pid] = ["output", "lock", "exit", "pid"].map((name) => join("runs/1", name)) as [
  string,
  string,
  string,
  string,
];

for (const [what, damage] of [
  ["without its output pipe", (state: string) => rmSync(join(state, pipe))],
  ["with a directory in place of its output pipe", (state: string) => replaceByDirectory(state, pipe)],
  ["with a log that cannot be opened", (state: string) => replaceByDirectory(state, "logs/1.log")],
  ["with a lock that cannot be opened", (state: string) => replaceByLoop(state, lock)],
] as const) {
  test(`a run that ended, restored ${what}, is recorded with its exit code`, async (t) => {
    const first = await killDuringRun(t);
    letGo(first.repoPath, 3);
    await until("the script has ended", () => existsSync(join(first.statePath, exit)));
    damage(first.statePath);
    const second = await first.again();
    const { state, ...recorded } = await untilDeployment(second.statePath, 1, isOver);
    assert.deepEqual([state, recorded.exitCode, recorded.attempts], ["failed", 3, 1]);
    const isOutputLost = recorded.problem?.detail.includes("The rest of the output is lost");
    assert.equal(isOutputLost, what !== "with a lock that cannot be opened");
    await assertDeploysNext(second);
  });
}

for (const [what, damage] of [
  ["no directory", (state: string) => rmSync(join(state, "runs"), { recursive: true })],
  ["a lock that cannot be opened", (state: string) => replaceByLoop(state, lock)],
] as const) {
  test(`a run without an exit code, of which there is ${what}, runs again`, async (t) => {
    const first = await killDuringRun(t);
    process.kill(-supervisorOf(first), "SIGKILL");
    letGo(first.repoPath);
    damage(first.statePath);
    const second = await first.again();
    const { state, attempts } = await untilDeployment(second.statePath, 1, isOver);
    assert.deepEqual([state, attempts], ["succeeded", 2]);
    await assertDeploysNext(second);
  });
}

for (const [what, damage] of [
  ["lock cannot be opened", (state: string) => replaceByLoop(state, lock)],
  ["output pipe is gone", (state: string) => rmSync(join(state, pipe))],
] as const) {
  test(`a script that still runs is adopted and stays alone if its ${what}`, async (t) => {
    const first = await killDuringRun(t);
    damage(first.statePath);
    const second = await first.again();
    await second.log.waitFor(({ event }) => event === "deployment.adopted");
    assert.equal((await deliver(second.url, githubPush())).json.deployment?.state, "queued");
    letGo(first.repoPath);
    await untilDeployment(second.statePath, 2, ({ state }) => state === "succeeded");
    const adopted = await untilDeployment(second.statePath, 1, isOver);
    assert.deepEqual([adopted.state, adopted.attempts], ["succeeded", 1]);
    assert.equal(readFileSync(join(first.repoPath, "runs"), "utf8"), "1\n2\n");
  });
}

/** A service that was killed while its script went on. */
async function killDuringRun(t: TestContext): Promise<RunningService> {
  const service = await startService(t, { script: `${patientScript}exit "$(cat go)"\n` });
  await deliver(service.url, githubPush());
  await service.log.waitFor(({ msg }) => msg === "up");
  await service.end("SIGKILL");
  return service;
}

async function assertDeploysNext(service: RunningService): Promise<void> {
  letGo(service.repoPath);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 2, ({ state }) => state === "succeeded");
}

function replaceByDirectory(statePath: string, path: string): void {
  rmSync(join(statePath, path), { force: true });
  mkdirSync(join(statePath, path));
}

/** A link to itself cannot be opened, not even by root. */
function replaceByLoop(statePath: string, path: string): void {
  rmSync(join(statePath, path), { force: true });
  symlinkSync(join(statePath, path), join(statePath, path));
}

function supervisorOf({ statePath }: RunningService): number {
  return Number(readFileSync(join(statePath, pid), "utf8"));
}

function isOver({ state }: { readonly state: string }): boolean {
  return state === "succeeded" || state === "failed";
}
