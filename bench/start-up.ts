import type { Scope } from "../test/harness/temporary.ts";
import { temporaryDirectory } from "../test/harness/temporary.ts";
import { type Pace, perRound } from "./pace.ts";
import { startAdnanhWebhook } from "./peers/adnanh-webhook.ts";
import { startBareNode } from "./peers/bare-node.ts";
import { compiledAhead, startHotpush } from "./peers/hotpush.ts";
import type { Receiver } from "./peers/receiver.ts";
import { ms, type Section, type Target } from "./report.ts";
import { withScope } from "./scope.ts";
import { median } from "./statistics.ts";
import { isInstalled, webhook } from "./tools.ts";

interface Way {
  readonly name: string;
  readonly start: (scope: Scope) => Promise<Receiver>;
}

const first: Way = {
  name: "Hotpush, first start",
  start: (scope) => startHotpush(scope, { env: { NODE_COMPILE_CACHE: compiledAhead(scope) } }),
};
const notCompiled: Way = {
  name: "Hotpush, first start after `npm ci --ignore-scripts`",
  start: (scope) => startHotpush(scope, { env: { NODE_COMPILE_CACHE: temporaryDirectory(scope) } }),
};
const warm: Way = { name: "Hotpush, any later start", start: (scope) => startHotpush(scope) };
const bare: Way = { name: "bare node:http", start: startBareNode };
const adnanh: Way = { name: "adnanh/webhook", start: (scope) => startAdnanhWebhook(scope) };

/** From starting the process to its first answer on /health. */
export async function measureStartUp(pace: Pace): Promise<Section> {
  const rounds = pace({ quick: 3, full: 10 });
  await startOnce(warm);
  const ways = [first, warm, notCompiled, bare, ...(isInstalled(webhook) ? [adnanh] : [])];
  const durations = await perRound(ways, rounds, startOnce);
  const medians = new Map([...durations].map(([way, durationsMs]) => [way, median(durationsMs)]));
  return {
    title: "Start",
    text: `From starting the process to its first answer (\`/health\` of Hotpush, any answer of the others), requested every 2 ms; medians of ${rounds}. \`npm ci\` compiles the code ahead; if npm runs no scripts, the first start compiles it. npm's own time is not counted.`,
    tables: [
      { columns: ["", "first answer"], rows: [...medians].map(([{ name }, value]) => [name, ms(value)]) },
    ],
    targets: [first, warm].map((way) => targetOf(way.name, medians.get(way) ?? Number.NaN)),
  };
}

async function startOnce({ start }: Way): Promise<number> {
  return await withScope(async (scope) => (await start(scope)).startMs);
}

function targetOf(name: string, p50Ms: number): Target {
  return { what: `${name}: to /health`, aim: "under 300 ms", measured: ms(p50Ms), isMet: p50Ms < 300 };
}
