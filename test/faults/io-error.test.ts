import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { cutPower, mountDisk } from "../harness/mounts.ts";
import { straced, triedCalls } from "../harness/processes.ts";
import { digestOf, findLost, readDeployments } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { spawnService, startedOrEnded, startService } from "../harness/service.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** How many calls fail, counted from the start of the service, each in a service of its own. */
const syncCalls = Number(process.env.HOTPUSH_TEST_SYNC_CALLS ?? 36);
const writeCalls = Number(process.env.HOTPUSH_TEST_WRITE_CALLS ?? 100);
const pushes = 6;
type Tally = Record<"refused" | "gaveUp", number>;
/** Digests, with the ids in the answers. */
type Accepted = ReadonlyMap<string, number>;
/** The spool is written by threads, each of which has its own count of calls. */
const oneWriter = { env: { UV_THREADPOOL_SIZE: "1" } };

test(
  `if any of the first ${syncCalls} syncs fails, or it and the next, no accepted push is lost or left`,
  needs("mount", "ext4", "strace"),
  async (t) => {
    const disk = mountDisk(t);
    const tally = { refused: 0, gaveUp: 0 };
    const failing = triedCalls(syncCalls).flatMap((call) => [`${call}`, `${call}..${call + 1}`]);
    for (const calls of failing) {
      const name = `state-${calls}`;
      // The sync does not happen at all, so its data is lost at a power cut.
      const fault = `fsync,fdatasync:error=EIO:when=${calls}`;
      await runWithFault(t, { statePath: join(disk.path, name), fault, tally }, (accepted) => {
        const lost = cutPower(disk, (path) => findLost(join(path, name), accepted));
        assert.deepEqual(lost, [], `accepted pushes were lost when sync ${calls} failed`);
      });
      // The disk is small.
      rmSync(join(disk.path, name), { recursive: true, maxRetries: 5 });
    }
    t.diagnostic(JSON.stringify(tally));
    assert.ok(tally.refused > 0 && tally.gaveUp > 0, "the fault was felt at the start and by pushes");
  },
);

test(
  `if any of the first ${writeCalls} writes finds the disk full, no accepted push is lost`,
  needs("strace"),
  async (t) => {
    const tally = { refused: 0, gaveUp: 0 };
    for (const call of triedCalls(writeCalls)) {
      const statePath = join(temporaryDirectory(t), "state");
      await runWithFault(t, { statePath, fault: `pwrite64:error=ENOSPC:when=${call}`, tally }, (accepted) => {
        assert.deepEqual(
          findLost(statePath, accepted),
          [],
          `accepted pushes were lost when write ${call} failed`,
        );
      });
    }
    t.diagnostic(JSON.stringify(tally));
    // The database is written so. A push that it cannot take waits in the spool.
    assert.ok(tally.gaveUp > 0, "the fault was felt at the start");
  },
);

test("a disk that fails for good refuses every push and says so on /health", needs("strace"), async (t) => {
  const service = await startService(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  await service.end();
  const broken = await service.again({
    ...oneWriter,
    wrapper: straced("fsync,fdatasync:error=EIO:when=20+", "-f"),
  });
  const push = async () => (await deliver(broken.url, githubPush())).status;
  await until("a push is refused", async () => (await push()) === 503);
  for (let count = 0; count < pushes; count += 1) {
    assert.equal(await push(), 503);
  }
  await until("/health says so", async () => (await fetch(`${broken.url}/health`)).status === 503);
  assert.equal(broken.child.exitCode, null);
});

/**
 * Starts a service that has one failing call. It either exits at once, cleanly, and works when it is started again; or it
 * keeps running, refuses what it can't store, and accepts again.
 *
 * @param fault in the syntax of strace's `inject`
 */
async function runWithFault(
  t: TestContext,
  { statePath, fault, tally }: { readonly statePath: string; readonly fault: string; readonly tally: Tally },
  check: (accepted: Accepted) => void,
): Promise<void> {
  const repoPath = temporaryDirectory(t);
  writeScript(join(repoPath, "deploy.sh"), "#!/bin/sh\n");
  const { child, log } = spawnService(t, {
    ...oneWriter,
    statePath,
    repoPath,
    wrapper: straced(fault, "-f"),
  });
  const ended = once(child, "exit");
  const started = await startedOrEnded({ child, log });
  if (!started) {
    tally.gaveUp += 1;
    assert.ok([70, 78].includes(child.exitCode ?? -1), `${fault}: exit code ${child.exitCode}`);
    assert.notEqual(log.otherText.length + log.lines.length, 0, `${fault}: not a word on why`);
    const again = await startService(t, { statePath, repoPath, script: null });
    assert.equal((await deliver(again.url, githubPush())).status, 202, `${fault}: started again`);
    await again.end("SIGKILL");
    return;
  }
  const accepted = await pushThrough(`http://127.0.0.1:${started.port}`, fault, tally);
  assert.equal(child.exitCode, null, `${fault}: the service stays`);
  check(accepted);
  const hasEnded = () => readDeployments(statePath).every(({ state }) => isFinished(state));
  await until(`${fault}: all have ended`, hasEnded);
  child.kill("SIGKILL");
  await ended;
  check(accepted);
}

async function pushThrough(url: string, fault: string, tally: Tally): Promise<Accepted> {
  const accepted = new Map<string, number>();
  async function push(): Promise<number> {
    const delivery = githubPush();
    const { status, json } = await deliver(url, delivery);
    assert.ok(status === 202 || json.code === "storage_unavailable", `${fault}: ${status} ${json.code}`);
    if (status === 202) accepted.set(digestOf(delivery), json.deployment?.id ?? 0);
    if (status !== 202) tally.refused += 1;
    return status;
  }
  for (let count = 0; count < pushes; count += 1) await push();
  await until(`${fault}: pushes are accepted again`, async () => (await push()) === 202);
  return accepted;
}
