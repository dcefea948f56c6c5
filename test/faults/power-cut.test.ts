import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { makeCheckout, makeMachine, type RunningRole } from "../harness/machine.ts";
import { cutPower, cutPowerOf, mountDisk } from "../harness/mounts.ts";
import { readRecorded, readSpool } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { startSenders } from "../harness/senders.ts";
import { until } from "../harness/until.ts";

const cuts = Number(process.env.HOTPUSH_TEST_CUTS ?? 60);
/** How many pushes are accepted between two cuts, at least. */
const leastAccepted = 16;
const needed = needs("mount", "ext4");

test("the image of a mounted disk holds synced data and nothing else", needed, (t) => {
  const disk = mountDisk(t);
  for (let index = 0; index < 50; index += 1) {
    writeFileSync(join(disk.path, `synced-${index}`), "record", { flush: true });
    writeFileSync(join(disk.path, `not-${index}`), "record");
  }
  const names = cutPower(disk, (path) =>
    readdirSync(path).filter((name) => /-/.test(name) && readFileSync(join(path, name), "utf8") !== ""),
  );
  assert.deepEqual([names.length, names.filter((name) => name.startsWith("not")).length], [50, 0]);
});

for (const roles of [["all"], ["front", "run"]] as const)
  test(`no accepted push is lost over ${cuts} power cuts of ${roles.join(" and ")}`, needed, async (t) => {
    const disk = mountDisk(t);
    const machine = makeMachine(t, disk.path);
    machine.addProject("shop", makeCheckout(t));
    const running: RunningRole[] = [];
    for (const role of roles) running.push(await machine.start(role));
    const pids = running.map(({ child }) => child.pid ?? 0);
    const load = startSenders(16, ["/webhook/shop"]);
    load.aim(`http://127.0.0.1:${running[0]?.port}`);
    const countPromised = () => load.accepted.size + load.stored.size;
    // Pushes leave the spool a while after they came.
    await until(
      "the first have left",
      () => countPromised() > 0 && !readSpool(machine.spoolPath).has([...load.accepted.keys()][0] ?? ""),
    );
    const losing: string[] = [];
    let removed = 0;
    for (let cut = 0; cut < cuts; cut += 1) {
      const before = countPromised();
      await delay(20 + Math.random() * 80);
      await until("pushes are accepted", () => countPromised() >= before + leastAccepted);
      const promised = new Map([...load.accepted, ...[...load.stored].map((digest) => [digest, 0] as const)]);
      const [fault, left] = await cutPowerOf(disk, pids, (path) => findFault(path, promised));
      if (fault !== null) losing.push(`cut ${cut}: ${fault}`);
      removed += left;
    }
    await load.stop();
    t.diagnostic(
      `${cuts} cuts, ${countPromised()} pushes accepted, ${removed} had left the spool, ${losing.length} cuts lost any`,
    );
    assert.notEqual(removed, 0);
    assert.deepEqual(losing, [], "accepted pushes were lost");
  });

/** @param promised with the ids in their answers; 0: there was none. @returns also how many had left the spool */
function findFault(path: string, promised: ReadonlyMap<string, number>): readonly [string | null, number] {
  try {
    const waiting = readSpool(join(path, "front/spool"));
    const left = [...promised].filter(([digest]) => !waiting.has(digest));
    return readRecorded(join(path, "run"), ({ all, idOf }) => {
      const verdict = all("PRAGMA integrity_check")[0]?.integrity_check;
      const isLost = ([digest, id]: readonly [string, number]) =>
        id === 0 ? idOf(digest) === null : idOf(digest) !== id;
      const lost = [...promised].filter((one) => (one[1] !== 0 || !waiting.has(one[0])) && isLost(one));
      const fault = lost.length === 0 ? null : `${lost.length} of ${promised.size} lost`;
      return [verdict === "ok" ? fault : `damaged: ${String(verdict)}`, left.length] as const;
    });
  } catch (error) {
    return [`unreadable: ${String(error)}`, 0];
  }
}
