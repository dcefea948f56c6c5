import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { waitForLock } from "../../src/platform/file-lock.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments } from "../harness/records.ts";
import { letGo, patientScript, type RunningService, startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

test("of two instances on one state directory both accept and one runs", async (t) => {
  const { first, second } = await startTwo(t);
  letGo(first.repoPath);
  for (const [id, { url }] of [second, first, second].entries()) {
    const reply = await deliver(url, githubPush());
    assert.deepEqual([reply.status, reply.json.deployment?.id], [202, id + 1]);
    assert.equal((await first.log.waitForEnding(id + 1)).event, "deployment.succeeded");
  }
  assert.ok(!second.log.lines.some(({ event }) => event === "deployment.started"));
  assert.equal(await second.end("SIGTERM"), 0);
});

test("100 identical deliveries to two instances at the same moment are one deployment", async (t) => {
  const { first, second } = await startTwo(t);
  letGo(first.repoPath);
  const push = githubPush();
  const urls = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? first.url : second.url));
  const replies = await Promise.all(urls.map((url) => deliver(url, push)));
  // The one that does not run has its pushes on disk, and answers so.
  const named = replies.filter(({ status, json }) => status === 202 && json.delivery === undefined);
  assert.ok(named.length <= 1, `${named.length} were told that theirs is new`);
  for (const { status } of replies) assert.ok(status === 200 || status === 202, String(status));
  await first.log.waitForEnding(1);
  await until("the spool is empty", () => readdirSync(join(first.statePath, "spool")).length === 0);
  assert.deepEqual(
    readDeployments(first.statePath).map(({ attempts }) => attempts),
    [1],
  );
});

test("if the leader is killed, the next adopts its script and runs what waits", async (t) => {
  const { first, second } = await startTwo(t);
  await deliver(first.url, githubPush());
  await first.log.waitFor(({ msg }) => msg === "up");
  await deliver(second.url, githubPush());
  await first.end("SIGKILL");
  await second.log.waitFor(({ event }) => event === "deployment.adopted");
  letGo(first.repoPath);
  assert.equal((await second.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.equal((await second.log.waitForEnding(2)).event, "deployment.succeeded");
  assert.equal(readFileSync(join(first.repoPath, "runs"), "utf8"), "1\n2\n");
});

test("in 25 races of four for the lock, one has it at a time and each gets it", async (t) => {
  for (let race = 0; race < 25; race += 1) {
    const lockPath = join(temporaryDirectory(t), "a.lock");
    const signal = new AbortController().signal;
    let holders = 0;
    let turns = 0;
    const run = async () => {
      const lock = await waitForLock(lockPath, { signal, onWait: () => {} });
      assert.ok(lock);
      holders += 1;
      assert.equal(holders, 1);
      await new Promise(setImmediate);
      turns += 1;
      holders -= 1;
      lock.release();
    };
    await Promise.all([run(), run(), run(), run()]);
    assert.equal(turns, 4);
  }
});

test("an instance that stops while it waits for the lock does not get it later", async (t) => {
  const lockPath = join(temporaryDirectory(t), "a.lock");
  const never = new AbortController().signal;
  const lock = await waitForLock(lockPath, { signal: never, onWait: () => {} });
  const stopping = new AbortController();
  const waiting = waitForLock(lockPath, { signal: stopping.signal, onWait: () => stopping.abort() });
  assert.equal(await waiting, null);
  lock?.release();
  const next = await waitForLock(lockPath, {
    signal: never,
    onWait: () => assert.fail("the lock is free"),
  });
  next?.release();
});

async function startTwo(
  t: Parameters<typeof startService>[0],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly first: RunningService; readonly second: RunningService }> {
  const first = await startService(t, { script: patientScript, env });
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "runner.waiting");
  return { first, second };
}
