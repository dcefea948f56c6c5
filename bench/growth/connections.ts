import { type Pace, perRound } from "../pace.ts";
import { startPeers } from "../peers/all.ts";
import { ignoredRef, pushOfSize } from "../push.ts";
import { count, ms, type Section } from "../report.ts";
import { withScope } from "../scope.ts";
import { median } from "../statistics.ts";
import { type LoadResult, loadWith } from "../wrk.ts";

const numbers = [1, 10, 100, 1_000];
const bodyBytes = 8_192;

/** Throughput and latency by the number of connections. */
export async function measureConnections(pace: Pace): Promise<Section> {
  const { rounds, seconds } = pace({ quick: { rounds: 1, seconds: 1 }, full: { rounds: 3, seconds: 3 } });
  const delivery = pushOfSize(bodyBytes, { ref: ignoredRef });
  const { names, rows } = await withScope(async (scope) => {
    const receivers = await startPeers(scope);
    const byNumber: string[][] = [];
    for (const connections of numbers) {
      const load = { delivery, connections, seconds };
      const measured = await perRound(receivers, rounds, ({ hookUrl }) => loadWith(hookUrl, load));
      byNumber.push([count(connections), ...[...measured.values()].map(cellOf)]);
    }
    return { names: receivers.map(({ name }) => name), rows: byNumber };
  });
  return {
    title: "Throughput by the number of connections",
    text: "Pushes of 8 KiB a second and the p99, for signed pushes to a branch that is not deployed. Each connection sends the next push as soon as the last is answered.",
    tables: [{ columns: ["Connections", ...names], rows }],
    targets: [],
  };
}

function cellOf(results: readonly LoadResult[]): string {
  const perSecond = median(results.map((result) => result.perSecond));
  return `${count(perSecond)}, ${ms(median(results.map(({ p99Ms }) => p99Ms)))}`;
}
