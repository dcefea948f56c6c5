import type { Delivery } from "../test/harness/delivery.ts";
import { type Pace, perRound } from "./pace.ts";
import { startPeers } from "./peers/all.ts";
import type { Receiver } from "./peers/receiver.ts";
import { cpuMicroseconds } from "./process.ts";
import { ignoredRef, pushOfSize } from "./push.ts";
import { count, ms, type Section, type Target, times } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { median } from "./statistics.ts";
import { loadWith } from "./wrk.ts";

const connections = 32;
const bodyBytes = 8_192;

interface Measured {
  readonly name: string;
  readonly perSecond: number;
  readonly p99Ms: number;
  /** CPU time of all threads of the receiver, for one push. */
  readonly cpuMicroseconds: number;
}

/** Signed pushes to a branch that nobody deploys, as many as each receiver can take. */
export async function measureThroughput(pace: Pace): Promise<Section> {
  const { rounds, seconds } = pace({ quick: { rounds: 2, seconds: 1 }, full: { rounds: 7, seconds: 4 } });
  const delivery = pushOfSize(bodyBytes, { ref: ignoredRef });
  const measured = await withScope(async (scope) => {
    const receivers = await startPeers(scope);
    for (const receiver of receivers) await warmUp(receiver, delivery);
    return await perRound(receivers, rounds, (receiver) => loadOnce(receiver, delivery, seconds));
  });
  const medians = [...measured].map(([{ name }, results]) => mediansOf(name, results));
  return {
    title: "Throughput",
    text: `A push of 8 KiB (GitHub's own example, signed) to a branch that is not deployed, repeatedly over ${connections} keep-alive connections. Each receiver reads, verifies and parses it, and runs nothing. Medians of ${rounds} rounds of ${seconds} s, in turns. \`bare node:http\` is a handler of a dozen lines that only hashes, compares and parses: no limits, no checks, no log. By default, adnanh/webhook logs nothing, and Hotpush logs the first hundred ignored pushes in a second, a line each, and the number of the others. CPU is the time of all threads of the receiver.`,
    tables: [{ columns: ["Receiver", "Pushes a second", "p99", "CPU for a push"], rows: medians.map(row) }],
    targets: targetsOf(medians),
  };
}

/** Before the measurement, the answer must be correct, and most code compiled. */
async function warmUp({ name, hookUrl }: Receiver, delivery: Delivery): Promise<void> {
  const { status } = await send(hookUrl, delivery);
  if (status !== 200) throw new Error(`${name} answered an ignored push with ${status}`);
  await loadWith(hookUrl, { delivery, connections, seconds: 1 });
}

async function loadOnce({ name, hookUrl, pid }: Receiver, delivery: Delivery, seconds: number) {
  const before = cpuMicroseconds(pid);
  const { perSecond, p99Ms, requests } = await loadWith(hookUrl, { delivery, connections, seconds });
  return { name, perSecond, p99Ms, cpuMicroseconds: (cpuMicroseconds(pid) - before) / requests };
}

function mediansOf(name: string, results: readonly Measured[]): Measured {
  return {
    name,
    perSecond: median(results.map(({ perSecond }) => perSecond)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
    cpuMicroseconds: median(results.map((result) => result.cpuMicroseconds)),
  };
}

function row({ name, perSecond, p99Ms, cpuMicroseconds }: Measured): string[] {
  return [name, count(perSecond), ms(p99Ms), `${Math.round(cpuMicroseconds)} µs`];
}

function targetsOf(all: readonly Measured[]): Target[] {
  const [hotpush, bare, webhook] = ["Hotpush", "bare node:http", "adnanh/webhook"].map((wanted) =>
    all.find(({ name }) => name === wanted),
  );
  const targets: Target[] = [];
  if (hotpush && bare) {
    targets.push({
      what: "Throughput, against a bare node:http handler",
      aim: "at least 0.80 ×",
      measured: times(hotpush.perSecond, bare.perSecond),
      isMet: hotpush.perSecond >= 0.8 * bare.perSecond,
    });
  }
  if (hotpush && webhook) {
    targets.push({
      what: "Throughput, against adnanh/webhook",
      aim: "at least 1 ×",
      measured: times(hotpush.perSecond, webhook.perSecond),
      isMet: hotpush.perSecond >= webhook.perSecond,
    });
    targets.push({
      what: "p99 under that load, against adnanh/webhook",
      aim: "at most 0.5 ×",
      measured: times(hotpush.p99Ms, webhook.p99Ms),
      isMet: hotpush.p99Ms <= 0.5 * webhook.p99Ms,
    });
  }
  return targets;
}
