import assert from "node:assert/strict";
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startLoad } from "../harness/load.ts";
import { makeCheckout, makeMachine } from "../harness/machine.ts";
import { cutPower, cutPowerOf, mountDisk } from "../harness/mounts.ts";
import { findLost, readRecorded, readSpool } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { makeMutant, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const cuts = Number(process.env.HOTPUSH_TEST_CUTS ?? 60);
/** How many pushes are accepted between two cuts, at least. */
const leastAccepted = 16;
const needed = needs("mount", "ext4");

test("the image of a mounted disk holds synced data and nothing else", needed, (t) => {
  const disk = mountDisk(t);
  for (const [name, isSynced] of [["synced", true] as const, ["not-synced", false] as const]) {
    for (let index = 0; index < 50; index += 1) writeRecord(join(disk.path, `${name}-${index}`), isSynced);
  }
  const isThere = (path: string) => readOrNull(path) === "record";
  const found = cutPower(disk, (path) => ({
    synced: countThere(path, "synced", isThere),
    notSynced: countThere(path, "not-synced", isThere),
  }));
  assert.deepEqual(found, { synced: 50, notSynced: 0 });
});

test(`no accepted push is lost over ${cuts} power cuts`, needed, async (t) => {
  const { losing, accepted, seconds } = await cutPowerUnderLoad(t, cuts);
  t.diagnostic(`${cuts} cuts in ${seconds} s, ${accepted} pushes accepted, ${losing.length} cuts lost any`);
  assert.deepEqual(losing, []);
});

test("with synchronous=NORMAL accepted pushes are lost, so the test above can fail", needed, async (t) => {
  const mainPath = makeMutant(t, {
    file: "platform/sqlite.ts",
    from: "PRAGMA synchronous = FULL",
    to: "PRAGMA synchronous = NORMAL",
  });
  const { losing, accepted } = await cutPowerUnderLoad(t, 6, mainPath);
  t.diagnostic(`6 cuts, ${accepted} pushes accepted, ${losing.length} cuts lost any`);
  assert.notEqual(losing.length, 0);
});

test(`no push that front accepted is lost over ${cuts} power cuts`, needed, async (t) => {
  const { losing, removed } = await cutPowerOfRoles(t, cuts);
  t.diagnostic(`${cuts} cuts, ${removed} pushes had left the spool, ${losing.length} cuts lost any`);
  assert.notEqual(removed, 0);
  assert.deepEqual(losing, []);
});

test("pushes are lost if they are answered before their file is synced", needed, async (t) => {
  const mainPath = makeMutant(t, {
    file: "front/webhook/spool.ts",
    from: "await file.sync();",
    to: "",
  });
  const { losing } = await cutPowerOfRoles(t, 6, mainPath);
  assert.notEqual(losing.length, 0);
});

/** Cuts the power of both processes `count` times while clients push. @returns the losses of each cut */
async function cutPowerOfRoles(t: TestContext, count: number, frontPath?: string) {
  const disk = mountDisk(t);
  const machine = makeMachine(t, disk.path);
  machine.addProject("shop", makeCheckout(t, "sleep 600"));
  const front = await machine.start("front", {}, [], frontPath);
  const run = await machine.start("run");
  const load = startLoad(4, { paths: ["/webhook/shop"] });
  load.aim(`http://127.0.0.1:${front.port}`);
  const losing: string[] = [];
  let removed = 0;
  // Pushes leave the spool a while after they came.
  await until(
    "the first have left",
    () => !readSpool(machine.spoolPath).has([...load.accepted.keys()][0] ?? ""),
  );
  // What is not recorded yet can be lost only from the spool.
  if (frontPath !== undefined) {
    run.child.kill("SIGSTOP");
    await until("pushes wait", () => load.stored.size > 0);
  }
  for (let cut = 0; cut < count; cut += 1) {
    await delay(50 + Math.random() * 100);
    const promised = [...load.accepted.keys(), ...load.stored];
    const pids = [front, run].map(({ child }) => child.pid ?? 0);
    const [fault, left] = await cutPowerOf(disk, pids, (path) => findFaultOfRoles(path, promised));
    if (fault !== null) losing.push(`cut ${cut}: ${fault}`);
    removed += left;
  }
  await load.stop();
  return { losing, removed };
}

/** @returns also how many had left the spool */
function findFaultOfRoles(path: string, promised: readonly string[]): readonly [string | null, number] {
  try {
    const waiting = readSpool(join(path, "front/spool"));
    const left = promised.filter((digest) => !waiting.has(digest));
    const lost = readRecorded(join(path, "state"), ({ idOf }) =>
      left.filter((digest) => idOf(digest) === null),
    );
    return [lost.length === 0 ? null : `${lost.length} of ${promised.length} lost`, left.length];
  } catch (error) {
    return [`unreadable: ${String(error)}`, 0];
  }
}

/** Cuts the power `count` times while clients push. @returns the losses of each cut */
async function cutPowerUnderLoad(t: TestContext, count: number, mainPath?: string) {
  const startedAtMs = performance.now();
  const disk = mountDisk(t);
  const service = await startService(t, {
    statePath: join(disk.path, "state"),
    ...(mainPath ? { mainPath } : {}),
  });
  const load = startLoad(16);
  load.aim(service.url);
  const losing: string[] = [];
  for (let cut = 0; cut < count; cut += 1) {
    const accepted = load.accepted.size;
    await delay(20 + Math.random() * 80);
    await until("pushes are accepted", () => load.accepted.size >= accepted + leastAccepted);
    const promised = new Map(load.accepted);
    const fault = await cutPowerOf(disk, [service.child.pid ?? 0], (path) =>
      findFault(join(path, "state"), promised),
    );
    if (fault !== null) losing.push(`cut ${cut}: ${fault}`);
  }
  await load.stop();
  await service.end("SIGKILL");
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  return { losing, accepted: load.accepted.size, seconds };
}

function findFault(statePath: string, promised: ReadonlyMap<string, number>): string | null {
  try {
    const verdict = readRecorded(statePath, ({ all }) => all("PRAGMA integrity_check")[0]?.integrity_check);
    if (verdict !== "ok") return `damaged: ${String(verdict)}`;
    const lost = findLost(statePath, promised);
    return lost.length === 0 ? null : `${lost.length} of ${promised.size} lost`;
  } catch (error) {
    return `unreadable: ${String(error)}`;
  }
}

function writeRecord(path: string, isSynced: boolean): void {
  const fd = openSync(path, "w");
  writeSync(fd, "record");
  if (isSynced) fsyncSync(fd);
  closeSync(fd);
}

function countThere(path: string, name: string, isThere: (path: string) => boolean): number {
  return Array.from({ length: 50 }, (_, index) => join(path, `${name}-${index}`)).filter(isThere).length;
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
