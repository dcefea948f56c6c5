import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { lockRollout } from "../../src/rollout/lock.ts";
import type { RolloutEvent } from "../../src/rollout/report/report.ts";
import { readProcesses } from "../../src/runner/processes.ts";
import { isProblem } from "../harness/is-problem.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

async function lockPath(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-lock-"));
  t.after(() => rm(directory, { recursive: true }));
  return join(directory, "state", "shop.lock");
}

test("a second roll-out is refused with the holder of the lock", async (t) => {
  const path = await lockPath(t);
  const lock = await lockRollout(path, 0);
  await assert.rejects(
    lockRollout(path, 0),
    isProblem("rollout_locked", new RegExp(`process ${process.pid}\\b`)),
  );
  await lock.release();
  await (await lockRollout(path, 0)).release();
});

test("a second roll-out that waits gets the lock when the first is done", async (t) => {
  const path = await lockPath(t);
  const lock = await lockRollout(path, 0);
  const second = lockRollout(path, 10);
  await lock.release();
  await (await second).release();
});

test("a missing flock is reported as such, not as an unusable state directory", async (t) => {
  const { PATH } = process.env;
  t.after(() => {
    process.env.PATH = PATH;
  });
  process.env.PATH = "/nonexistent";
  await assert.rejects(lockRollout(await lockPath(t), 0), isProblem("tool_missing", /Install util-linux/));
});

test("a signal to our process group does not end a flock that waits", async (t) => {
  const path = await lockPath(t);
  const lock = await lockRollout(path, 0);
  const second = lockRollout(path, 60);
  const waiting = await until("flock waits", () =>
    readProcesses().find(({ parent, command }) => parent === process.pid && command.includes("--timeout 60")),
  );
  assert.equal(waiting.group, waiting.pid);
  await lock.release();
  await (await second).release();
});

test("a lock that the system refuses is reported in the words of flock", async (t) => {
  const { PATH } = process.env;
  const directory = await mkdtemp(join(tmpdir(), "hotpush-flock-"));
  t.after(async () => {
    process.env.PATH = PATH;
    await rm(directory, { recursive: true });
  });
  writeScript(join(directory, "flock"), "#!/bin/sh\necho 'flock: 3: No locks available' >&2\nexit 71\n");
  process.env.PATH = `${directory}:${PATH}`;
  const told = /shop\.lock could not be locked \(flock: 3: No locks available\)/;
  await assert.rejects(lockRollout(await lockPath(t), 0), isProblem("state_unusable", told));
});

test("a child with the descriptor keeps the lock after the roll-out was killed", async (t) => {
  const path = await lockPath(t);
  const lock = await lockRollout(path, 0);
  const child = spawn("sleep", ["60"], { stdio: ["ignore", "ignore", "ignore", lock.descriptor] });
  await once(child, "spawn");
  await lock.release(); // As the kernel does when a process is killed.
  await assert.rejects(lockRollout(path, 0), isProblem("rollout_locked"));
  child.kill("SIGKILL");
  await once(child, "exit");
  await (await lockRollout(path, 0)).release();
});

const { signal } = new AbortController();

test("a roll-out reports which other one it waits for, and how long it waited", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const told: RolloutEvent[] = [];
  const other = await lockRollout(lockPath, 0);
  const waiting = lockRollout(lockPath, 60, { report: (event) => told.push(event), signal });
  await until("it is reported", () => told.length === 1);
  const text = `waiting for another roll-out of this project (process ${process.pid}), 60 s at most`;
  assert.deepEqual(told, [{ event: "note", service: null, text }]);
  await other.release();
  await (await waiting).release();
  const last = told.at(-1);
  assert.ok(last?.event === "step" && last.step === "lock" && last.durationMs >= 0);
});

test("a roll-out that need not wait says nothing of the lock", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const report = () => assert.fail("something was reported");
  await (await lockRollout(lockPath, 60, { report, signal })).release();
});

test("a waiting roll-out that is asked to stop says so, and stops waiting", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const other = await lockRollout(lockPath, 0);
  const stopping = new AbortController();
  const waiting = lockRollout(lockPath, 2, { report: () => stopping.abort(), signal: stopping.signal });
  const told = new RegExp(`asked to stop while it waited for another one \\(process ${process.pid}\\)`);
  await assert.rejects(waiting, isProblem("rollout_interrupted", told));
  await other.release();
  await (await lockRollout(lockPath, 0)).release();
});
