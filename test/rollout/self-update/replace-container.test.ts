import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { lockRollout } from "../../../src/rollout/lock.ts";
import { unlessRollingOut } from "../../../src/rollout/self-update/replace-container.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("does nothing while a roll-out holds its lock, and does not wait", async (t) => {
  const path = join(temporaryDirectory(t), "shop.lock");
  const lock = await lockRollout(path, 0);
  const done: string[] = [];
  await unlessRollingOut(path, async () => void done.push("during"));
  await lock.release();
  await unlessRollingOut(path, async () => void done.push("after"));
  assert.deepEqual(done, ["after"]);
});

test("no roll-out starts during the work; one can start after it, even if it failed", async (t) => {
  const path = join(temporaryDirectory(t), "shop.lock");
  const work = async () => {
    await assert.rejects(lockRollout(path, 0), isProblem("rollout_locked"));
    throw new Error("no engine");
  };
  await assert.rejects(unlessRollingOut(path, work), /^Error: no engine$/);
  await (await lockRollout(path, 0)).release();
});

test("runs at once without a known lock, as in requests of older versions", async () => {
  const done: string[] = [];
  await unlessRollingOut(undefined, async () => void done.push("done"));
  assert.deepEqual(done, ["done"]);
});
