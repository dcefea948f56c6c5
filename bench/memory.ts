import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { memoryOf } from "../test/harness/processes.ts";
import { type Scope, temporaryDirectory } from "../test/harness/temporary.ts";
import { pushesToMain } from "./accept.ts";
import type { Pace } from "./pace.ts";
import { startAdnanhWebhook } from "./peers/adnanh-webhook.ts";
import { startBareNode } from "./peers/bare-node.ts";
import { compiledAhead, startHotpush } from "./peers/hotpush.ts";
import type { Receiver } from "./peers/receiver.ts";
import { forgetPeak } from "./process.ts";
import { mb, ms, type Section } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { percentile } from "./statistics.ts";
import { isInstalled, webhook } from "./tools.ts";

const clients = 500;
const bodyBytes = 25 * 1024 ** 2;
const betweenPushesMs = 100;

/** Resident memory: idle, and during a flood of large bodies with wrong signatures. */
export async function measureMemory(pace: Pace): Promise<Section> {
  const settleMs = pace({ quick: 1_000, full: 10_000 });
  const startWith = (cacheFor: (scope: Scope) => string) => (scope: Scope) =>
    startHotpush(scope, { env: { NODE_COMPILE_CACHE: cacheFor(scope) } });
  const first = await idleBytes(startWith(compiledAhead), settleMs);
  const notCompiled = await idleBytes(startWith(temporaryDirectory), settleMs);
  const warm = await idleBytes(startHotpush, settleMs);
  const rows = [
    ["Hotpush, idle after its first start", mb(first)],
    ["Hotpush, idle after any later start", mb(warm)],
    ["Hotpush, idle after its first start after `npm ci --ignore-scripts`", mb(notCompiled)],
    ["bare node:http, idle", mb(await idleBytes(startBareNode, settleMs))],
  ];
  if (isInstalled(webhook))
    rows.push(["adnanh/webhook, idle", mb(await idleBytes(startAdnanhWebhook, settleMs))]);
  const flood = await withScope(async (scope) => await floodOnce(await startHotpush(scope)));
  rows.push(["Hotpush, peak in the flood", mb(flood.peakBytes)]);
  return {
    title: "Memory",
    text: `Resident memory ${settleMs / 1_000} s after the start. (If npm ran no scripts, Node strips the types of all files at the first start, and keeps the memory for that until it exits.) The peak is measured while ${clients} clients, in a process of their own, send bodies of 25 MiB with wrong signatures all at once, and a valid push arrives every ${betweenPushesMs} ms. The flood took ${(flood.durationMs / 1_000).toFixed(1)} s and was answered with ${flood.answers}; of ${flood.pushes} valid pushes ${flood.accepted} were accepted, at a p99 of ${ms(flood.p99Ms)}.`,
    tables: [{ columns: ["", "Resident"], rows }],
    targets: [
      {
        what: "Resident memory, idle",
        aim: "under 80 MB",
        measured: mb(Math.max(first, warm)),
        isMet: Math.max(first, warm) < 80e6,
      },
      {
        what: "Peak while 500 clients send 25 MiB with bad signatures",
        aim: "under 256 MB",
        measured: mb(flood.peakBytes),
        isMet: flood.peakBytes < 256e6,
      },
      {
        what: "Valid pushes accepted meanwhile",
        aim: "all",
        measured: `${flood.accepted} of ${flood.pushes}`,
        isMet: flood.accepted === flood.pushes && flood.pushes > 0,
      },
    ],
  };
}

async function idleBytes(start: (scope: Scope) => Promise<Receiver>, settleMs: number): Promise<number> {
  return await withScope(async (scope) => {
    const { pid } = await start(scope);
    await delay(settleMs);
    return memoryOf(pid).residentBytes;
  });
}

async function floodOnce({ hookUrl, pid }: Receiver) {
  const pushes = pushesToMain(2_000);
  forgetPeak(pid);
  const startMs = performance.now();
  let isFlooding = true;
  const flood = runFlood(hookUrl).finally(() => {
    isFlooding = false;
  });
  const sent: { status: number; durationMs: number }[] = [];
  for (const push of pushes) {
    if (!isFlooding) break;
    sent.push(await send(hookUrl, push).catch(() => ({ status: 0, durationMs: 0 })));
    await delay(betweenPushesMs);
  }
  return {
    answers: describe(await flood),
    durationMs: performance.now() - startMs,
    peakBytes: memoryOf(pid).peakBytes,
    pushes: sent.length,
    accepted: sent.filter(({ status }) => status === 202).length,
    p99Ms: percentile(
      sent.map(({ durationMs }) => durationMs),
      99,
    ),
  };
}

async function runFlood(url: string): Promise<Record<string, number>> {
  const program = join(import.meta.dirname, "flood.ts");
  const args = [program, url, String(clients), String(bodyBytes)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Record<string, number>;
}

function describe(answers: Record<string, number>): string {
  return Object.entries(answers)
    .map(([answer, times]) => `${answer} (${times} times)`)
    .join(", ");
}
