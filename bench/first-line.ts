import { execFileSync } from "node:child_process";
import { constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Scope, temporaryDirectory } from "../test/harness/temporary.ts";
import { pushesToMain } from "./accept.ts";
import type { Pace } from "./pace.ts";
import { startAdnanhWebhook } from "./peers/adnanh-webhook.ts";
import { startHotpush } from "./peers/hotpush.ts";
import type { Receiver } from "./peers/receiver.ts";
import { ms, type Section } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { median, percentile } from "./statistics.ts";
import { isInstalled, webhook } from "./tools.ts";

/** Long enough for a deployment to end and be recorded, so that the next push finds nothing running. */
const betweenMs = 150;

type Start = (scope: Scope, script: string) => Promise<Receiver>;

/** From sending a push to the first command of the script, on an otherwise idle service. */
export async function measureFirstLine(pace: Pace): Promise<Section> {
  const pushes = pace({ quick: 10, full: 50 });
  const hotpush = await measure((scope, script) => startHotpush(scope, { script }), pushes);
  const rows = [rowOf("Hotpush", hotpush)];
  if (isInstalled(webhook)) rows.push(rowOf("adnanh/webhook", await measure(startAdnanhWebhook, pushes)));
  const p50Ms = median(hotpush);
  return {
    title: "From the push to the script",
    text: `From sending a push until the first command of the script has written to a named pipe; ${pushes} pushes, one at a time. In between, Hotpush writes the deployment to disk, checks the script, takes the lock that outlives it, and opens its log; adnanh/webhook starts the command at once.`,
    tables: [{ columns: ["Receiver", "median", "p99"], rows }],
    targets: [
      {
        what: "Push to the first line of the script, median",
        aim: "under 25 ms",
        measured: ms(p50Ms),
        isMet: p50Ms < 25,
      },
    ],
  };
}

async function measure(start: Start, pushes: number): Promise<number[]> {
  return await withScope(async (scope) => {
    const pipe = openPipe(scope);
    const { hookUrl } = await start(scope, `#!/bin/sh\necho started >${pipe.path}\n`);
    const durationsMs: number[] = [];
    for (const push of pushesToMain(pushes)) {
      await delay(betweenMs);
      const startMs = performance.now();
      const written = pipe.nextWrite();
      await send(hookUrl, push);
      durationsMs.push((await written) - startMs);
    }
    return durationsMs;
  });
}

/** The same for the first push to a service that has just started. @param root the checkout to start */
export async function measureFirstPush(scope: Scope, root: string): Promise<number> {
  const pipe = openPipe(scope);
  const { hookUrl } = await startHotpush(scope, { root, script: `#!/bin/sh\necho started >${pipe.path}\n` });
  await delay(betweenMs);
  const startMs = performance.now();
  const written = pipe.nextWrite();
  for (const push of pushesToMain(1)) await send(hookUrl, push);
  return (await written) - startMs;
}

/** A named pipe that is open at both ends, so that the script's `echo` neither waits nor closes it. */
function openPipe(scope: Scope) {
  const path = join(temporaryDirectory(scope), "pipe");
  execFileSync("mkfifo", [path]);
  const socket = new Socket({ fd: openSync(path, constants.O_RDWR | constants.O_NONBLOCK), writable: false });
  scope.after(() => socket.destroy());
  socket.resume();
  return {
    path,
    nextWrite: () => new Promise<number>((resolve) => socket.once("data", () => resolve(performance.now()))),
  };
}

function rowOf(name: string, durationsMs: readonly number[]): string[] {
  return [name, ms(median(durationsMs)), ms(percentile(durationsMs, 99))];
}
