import { fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Delivery, randomCommit } from "../test/harness/delivery.ts";
import { temporaryDirectory } from "../test/harness/temporary.ts";
import type { Pace } from "./pace.ts";
import { startAdnanhWebhook } from "./peers/adnanh-webhook.ts";
import { startHotpush } from "./peers/hotpush.ts";
import type { Receiver } from "./peers/receiver.ts";
import { pushOfSize } from "./push.ts";
import { ms, type Section, type Target } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { median, percentile } from "./statistics.ts";
import { isInstalled, webhook } from "./tools.ts";

/** Pushes. */
export const perSecond = 100;
export const bodyBytes = 8_192;

/** Runs during the whole measurement, like a deployment that builds. */
export const longScript = "#!/bin/sh\nexec sleep 600\n";
const emptyScript = "#!/bin/sh\n";

/** Pushes to main at a steady rate. Each is answered when it is on disk. */
export async function measureAccepting(pace: Pace): Promise<Section> {
  const seconds = pace({ quick: 2, full: 10 });
  const accepting = (script: string) =>
    withScope(async (scope) => acceptAll(toMain(await startHotpush(scope, { script }), seconds), 202));
  const usual = await accepting(longScript);
  const worst = await accepting(emptyScript);
  const rows = [
    rowOf("Hotpush, while a deployment runs", usual),
    rowOf("Hotpush, one start after another", worst),
  ];
  if (isInstalled(webhook)) {
    const peer = await withScope(
      async (scope) => await acceptAll(toMain(await startAdnanhWebhook(scope), seconds), 200),
    );
    rows.push(rowOf("adnanh/webhook, which stores nothing", peer));
  }
  const syncs = await withScope(async (scope) =>
    syncDurations(temporaryDirectory(scope), pace({ quick: 50, full: 500 })),
  );
  rows.push(rowOf("`fdatasync` of 4 KiB on the same disk", syncs));
  return {
    title: "Accepting a push",
    text: `${perSecond} different pushes to main a second for ${seconds} s. Each is sent on schedule, even if earlier ones are unanswered, and its latency counts from the scheduled time. Hotpush answers 202 when the deployment is on disk (SQLite, synced). In the first case, one script runs throughout, so each push supersedes the waiting one. In the second, the script is \`#!/bin/sh\` and nothing else, so each deployment starts as soon as the last has ended. That is the worst case: starting a process takes milliseconds during which nothing is answered.`,
    tables: [{ columns: ["", "p50", "p99", "longest"], rows }],
    targets: [
      targetOf("Accepting, p99 at 100 pushes a second while a deployment runs", usual),
      targetOf("The same while scripts that do nothing start one after another", worst),
    ],
  };
}

function targetOf(what: string, latenciesMs: readonly number[]): Target {
  const p99Ms = percentile(latenciesMs, 99);
  return { what, aim: "under 10 ms", measured: ms(p99Ms), isMet: p99Ms < 10 };
}

/** Distinct pushes to main, each starting from the last commit of the one before. */
export function pushesToMain(length: number): readonly Delivery[] {
  let before = randomCommit();
  return Array.from({ length }, () => {
    const after = randomCommit();
    const delivery = pushOfSize(bodyBytes, { ref: "refs/heads/main", before, after });
    before = after;
    return delivery;
  });
}

function toMain({ hookUrl }: Receiver, seconds: number): readonly SentPush[] {
  return pushesToMain(perSecond * (seconds + 1)).map((push) => ({ url: hookUrl, push }));
}

export interface SentPush {
  readonly url: string;
  readonly push: Delivery;
}

/**
 * Sends pushes at a steady rate; those of the first second one after the other, to warm up.
 *
 * @returns the latencies of the others, in milliseconds
 */
export async function acceptAll(pushes: readonly SentPush[], expected: number): Promise<number[]> {
  for (const { url, push } of pushes.slice(0, perSecond)) await send(url, push);
  const startMs = performance.now() + 100;
  const latencies = pushes.slice(perSecond).map(async ({ url, push }, index) => {
    const dueMs = startMs + (index * 1_000) / perSecond;
    await delay(dueMs - performance.now());
    const sentMs = performance.now();
    const { status, durationMs } = await send(url, push);
    if (status !== expected) throw new Error(`${url} answered a push to main with ${status}`);
    return sentMs - dueMs + durationMs;
  });
  return await Promise.all(latencies);
}

/** How long the disk takes to sync an appended block: no push can be accepted faster. */
export function syncDurations(directory: string, length: number): number[] {
  const fd = openSync(join(directory, "blocks"), "a");
  const block = Buffer.alloc(4_096, 1);
  return Array.from({ length }, () => {
    const startMs = performance.now();
    writeSync(fd, block);
    fdatasyncSync(fd);
    return performance.now() - startMs;
  });
}

function rowOf(name: string, durationsMs: readonly number[]): string[] {
  return [name, ms(median(durationsMs)), ms(percentile(durationsMs, 99)), ms(Math.max(...durationsMs))];
}
