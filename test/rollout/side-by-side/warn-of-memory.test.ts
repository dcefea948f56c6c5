import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readFreeMemory } from "../../../src/platform/free-memory.ts";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { warnOfMemory } from "../../../src/rollout/side-by-side/warn-of-memory.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { sampleContainer, sampleService } from "../sample.ts";

const mebibyte = 1024 ** 2;

test("a service that does not fit into memory twice is named with what is missing", async () => {
  const [note, ...others] = await notesWith({ heldMib: 800, freeMib: 300, swapMib: 100 });
  assert.ok(note?.event === "note");
  assert.equal(note.service, "app");
  assert.match(note.text, /^holds 800 MiB of memory, .*: 300 MiB are free, and 100 MiB of swap\./);
  assert.deepEqual(others, []);
});

test("one that fits, if only with swap, is not", async () => {
  assert.deepEqual(await notesWith({ heldMib: 800, freeMib: 300, swapMib: 500 }), []);
});

test("one that is recreated needs no room for two", async () => {
  const replacement = { how: "recreate", reason: "x" } as const;
  assert.deepEqual(await notesWith({ heldMib: 800, freeMib: 3, swapMib: 0, replacement }), []);
});

test("the free memory is that of the kernel, and endless if it does not say", async (t) => {
  const path = join(temporaryDirectory(t), "meminfo");
  const endless = Number.POSITIVE_INFINITY;
  assert.deepEqual(await readFreeMemory(path), { availableBytes: endless, swapBytes: endless });
  writeFileSync(path, "MemTotal: 9 kB\nMemAvailable:    2048 kB\nSwapFree:   1024 kB\n");
  assert.deepEqual(await readFreeMemory(path), { availableBytes: 2 * mebibyte, swapBytes: mebibyte });
});

interface Situation {
  readonly heldMib: number;
  readonly freeMib: number;
  readonly swapMib: number;
  readonly replacement?: ReturnType<typeof sampleService>["replacement"];
}

async function notesWith(situation: Situation): Promise<readonly RolloutEvent[]> {
  const { heldMib, freeMib, swapMib, replacement = { how: "roll" } } = situation;
  const events: RolloutEvent[] = [];
  const get = async () =>
    Buffer.from(JSON.stringify({ memory_stats: { usage: heldMib * mebibyte, stats: { inactive_file: 0 } } }));
  const engine = { get, post: get, delete: get };
  const services = [sampleService({ replacement })];
  const running = new Map([["app", [sampleContainer()]]]);
  const free = { availableBytes: freeMib * mebibyte, swapBytes: swapMib * mebibyte };
  await warnOfMemory({ engine, report: (event) => events.push(event), services }, running, async () => free);
  return events;
}
