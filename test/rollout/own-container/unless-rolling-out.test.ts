import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { lockRollout } from "../../../src/rollout/lock.ts";
import { unlessRollingOut } from "../../../src/rollout/own-container/unless-rolling-out.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("nothing is done while a roll-out holds its lock, and it is not waited for", async (t) => {
  const path = join(temporaryDirectory(t), "shop.lock");
  const lock = await lockRollout(path, 0);
  const done: string[] = [];
  await unlessRollingOut(path, async () => void done.push("during"));
  await lock.release();
  await unlessRollingOut(path, async () => void done.push("after"));
  assert.deepEqual(done, ["after"]);
});

test("no roll-out begins while it is done, and one can afterwards, also where it failed", async (t) => {
  const path = join(temporaryDirectory(t), "shop.lock");
  const work = async () => {
    await assert.rejects(lockRollout(path, 0), isProblem("rollout_locked"));
    throw new Error("no engine");
  };
  await assert.rejects(unlessRollingOut(path, work), /^Error: no engine$/);
  await (await lockRollout(path, 0)).release();
});

test("where no lock is known, as an older Hotpush asked, it is done at once", async () => {
  const done: string[] = [];
  await unlessRollingOut(undefined, async () => void done.push("done"));
  assert.deepEqual(done, ["done"]);
});
