import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { lockRollout } from "../../src/rollout/lock.ts";
import { lockInTurn } from "../../src/rollout/lock-in-turn.ts";
import type { RolloutEvent } from "../../src/rollout/report/report.ts";
import { isProblem } from "../harness/is-problem.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();

test("a roll-out that waits for another one tells for which, and how long it took", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const told: RolloutEvent[] = [];
  const other = await lockRollout(lockPath, 0);
  const waiting = lockInTurn({ lockPath, lockWaitS: 60, report: (event) => told.push(event), signal });
  await until("it is told", () => told.length === 1);
  const text = `waiting for another roll-out of this project (process ${process.pid}), 60 s at most`;
  assert.deepEqual(told, [{ event: "note", service: null, text }]);
  await other.release();
  await (await waiting).release();
  const last = told.at(-1);
  assert.ok(last?.event === "step" && last.step === "lock" && last.durationMs >= 0);
});

test("a roll-out that need not wait says nothing of the lock", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const report = () => assert.fail("something was told");
  await (await lockInTurn({ lockPath, lockWaitS: 60, report, signal })).release();
});

test("a roll-out that is asked to stop while it waits for another one says so, and waits no longer", async (t) => {
  const lockPath = join(temporaryDirectory(t), "shop.lock");
  const other = await lockRollout(lockPath, 0);
  const stopping = new AbortController();
  const waiting = lockInTurn({
    lockPath,
    lockWaitS: 2,
    report: () => stopping.abort(),
    signal: stopping.signal,
  });
  const told = new RegExp(`asked to stop while it waited for another one \\(process ${process.pid}\\)`);
  await assert.rejects(waiting, isProblem("rollout_interrupted", told));
  await other.release();
  await (await lockRollout(lockPath, 0)).release();
});
