import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { deliver, githubPush, randomCommit, statePaths } from "../harness/delivery.ts";
import { mountTmpfs, remount } from "../harness/mounts.ts";
import { straced, triedCalls } from "../harness/processes.ts";
import { databasePath, readLog } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import {
  quickScript,
  type RunningService,
  spawnService,
  startedOrEnded,
  startService,
} from "../harness/service.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

const damages = Number(process.env.HOTPUSH_TEST_DAMAGES ?? 50);
/** A first start has this many writes, and not ten times as many. */
const leastWrites = 20;

/** A database with a history, as a stopped service leaves it. */
let healthy: Buffer;

before(async (context) => {
  const scope = context as unknown as Scope;
  const service = await startService(scope);
  for (let count = 0; count < 12; count += 1) {
    const { json } = await deliver(service.url, githubPush());
    if (count % 2 === 0) await service.log.waitForEnding(json.deployment?.id ?? 0);
  }
  await service.end();
  healthy = readFileSync(databasePath(service.statePath));
});

test(`a database with flipped bytes (${damages} seeds) is moved aside, refused with a reason, or still good`, async (t) => {
  const outcomes = { movedAside: 0, refused: 0, refusing: 0, stillGood: 0 };
  for (let seed = 1; seed <= damages; seed += 1) outcomes[await startOnFlipped(t, seed)] += 1;
  t.diagnostic(JSON.stringify(outcomes));
  assert.ok(outcomes.movedAside > damages / 10, "the damage was found");
  assert.ok(outcomes.refusing <= damages / 10, "nearly all of them still accept pushes");
  assert.ok(outcomes.refused <= 1, "only a changed version number prevents a start");
});

async function startOnFlipped(t: TestContext, seed: number) {
  const statePath = stateWith(t, flipped(healthy, seed));
  const repoPath = temporaryDirectory(t);
  writeScript(join(repoPath, "deploy.sh"), quickScript);
  const { child, log } = spawnService(t, { statePath, repoPath });
  const started = await startedOrEnded({ child, log });
  if (!started) {
    assert.equal(child.exitCode, 78, `seed ${seed}`);
    assert.match(log.otherText.join("\n"), /has version|already exists/);
    return "refused";
  }
  const url = `http://127.0.0.1:${started.port}`;
  statePaths.set(url, statePath);
  // A changed rule of the schema can refuse every push: nothing is accepted, so nothing is lost.
  const { status, json } = await deliver(url, githubPush());
  const isRefusing = status === 503 && json.code === "storage_unavailable";
  if (!isRefusing) await assertDeploys({ url, log }, `seed ${seed}`);
  assert.equal(child.exitCode, null, `seed ${seed}: the service stays`);
  child.kill("SIGKILL");
  if (isRefusing) return "refusing";
  return wasMovedAside({ log }) ? "movedAside" : "stillGood";
}

for (const [what, bytes] of [
  ["cut short in the middle of a page", () => healthy.subarray(0, Math.floor(healthy.length / 2) + 100)],
  ["with only its first page left", () => healthy.subarray(0, 4096)],
  ["that is another kind of file", () => Buffer.from("This is no database.\n".repeat(500))],
  ["that is all zeros", () => Buffer.alloc(healthy.length)],
] as const) {
  test(`a database ${what} is moved aside and kept, and pushes are accepted`, async (t) => {
    const service = await startService(t, { statePath: stateWith(t, bytes()) });
    const aside = service.log.lines.find(({ event }) => event === "store.moved_aside");
    assert.ok(aside, "the log says that the database was moved");
    assert.deepEqual(readFileSync(String(aside.path)), bytes());
    await assertDeploys(service, what);
  });
}

for (const [what, damage] of [
  ["damaged", (path: string) => writeFileSync(path, "This is no database.\n".repeat(500))],
  ["lost", (path: string) => rmSync(path)],
] as const) {
  test(`deployments after a database was ${what} do not write into the logs of earlier ones`, async (t) => {
    const first = await startService(t);
    for (const id of [1, 2, 3]) {
      await deliver(first.url, githubPush());
      await first.log.waitForEnding(id);
    }
    await first.end();
    damage(databasePath(first.statePath));
    const second = await first.again();
    const commit = randomCommit();
    const { json } = await deliver(second.url, githubPush({ after: commit }));
    assert.equal(json.deployment?.id, 4);
    await second.log.waitForEnding(4);
    assert.equal(readLog(second.statePath, 4), `==> Deploy\ndeployed refs/heads/main ${commit}\n`);
  });
}

test("a read-only state directory is refused: exit code 78, and what to do", needs("mount"), async (t) => {
  for (const bytes of [null, healthy]) {
    const disk = mountTmpfs(t, 4 * 1024 ** 2);
    const statePath = join(disk, "state");
    mkdirSync(statePath);
    if (bytes) writeFileSync(databasePath(statePath), bytes);
    remount(disk, "ro");
    const { child, log } = spawnService(t, { statePath, repoPath: temporaryDirectory(t) });
    assert.equal(await startedOrEnded({ child, log }), null, "the service must not start");
    assert.equal(child.exitCode, 78);
    assert.match(
      log.otherText.join("\n"),
      new RegExp(`The state directory ${statePath} cannot be used .*set STATE_PATH`),
    );
  }
});

test("a service killed at any write of its first start works at the next", needs("strace"), async (t) => {
  let last = 0;
  for (const write of triedCalls(10 * leastWrites)) {
    if (!(await isKilledAtWrite(t, write))) break;
    last = write;
  }
  assert.ok(last >= leastWrites, `the last write that came was ${last}`);
});

/** @returns false if the first start has fewer writes than that */
async function isKilledAtWrite(t: TestContext, write: number): Promise<boolean> {
  const paths = { statePath: join(temporaryDirectory(t), "state"), repoPath: temporaryDirectory(t) };
  const fault = `pwrite64:signal=KILL:when=${write}`;
  const first = spawnService(t, { ...paths, wrapper: straced(fault) });
  if (await startedOrEnded(first)) return false;
  assert.equal(first.child.signalCode, "SIGKILL");
  const service = await startService(t, { statePath: paths.statePath });
  assert.equal(wasMovedAside(service), false, `write ${write}`);
  await assertDeploys(service, `write ${write}`);
  await service.end("SIGKILL");
  return true;
}

function stateWith(t: TestContext, bytes: Buffer): string {
  const statePath = temporaryDirectory(t);
  writeFileSync(databasePath(statePath), bytes);
  return statePath;
}

function wasMovedAside({ log }: Pick<RunningService, "log">): boolean {
  return log.lines.some(({ event }) => event === "store.moved_aside");
}

async function assertDeploys(
  { url, log }: Pick<RunningService, "url" | "log">,
  claim: string,
): Promise<void> {
  const { status, json } = await deliver(url, githubPush());
  assert.equal(status, 202, `${claim}: a push is answered ${status}`);
  const ending = await log.waitForEnding(json.deployment?.id ?? 0);
  assert.equal(ending.event, "deployment.succeeded", claim);
}

/** Changes one to eight bytes, at places and to values that only depend on `seed`. */
function flipped(bytes: Buffer, seed: number): Buffer {
  const copy = Buffer.from(bytes);
  const random = createHash("sha256").update(String(seed)).digest();
  for (let count = 0; count <= seed % 8; count += 1) {
    const offset = random.readUInt32LE(4 * count) % copy.length;
    copy[offset] = (copy[offset] ?? 0) ^ (1 + ((random[31 - count] ?? 0) % 255));
  }
  return copy;
}
