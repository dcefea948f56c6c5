import { type Pace, perRound } from "../pace.ts";
import { startPeers } from "../peers/all.ts";
import { ignoredRef, pushOfSize } from "../push.ts";
import { ms, type Section } from "../report.ts";
import { withScope } from "../scope.ts";
import { type Sent, send } from "../send.ts";
import { median } from "../statistics.ts";

const kib = 1024;
const sizes = [
  { name: "1 KiB", bytes: kib },
  { name: "8 KiB", bytes: 8 * kib },
  { name: "64 KiB", bytes: 64 * kib },
  { name: "1 MiB", bytes: kib ** 2 },
  { name: "5 MiB", bytes: 5 * kib ** 2 },
  { name: "25 MiB", bytes: 25 * kib ** 2 },
];

/** How long one push takes, by its size. */
export async function measureBodySizes(pace: Pace): Promise<Section> {
  const pushes = pace({ quick: 5, full: 50 });
  const { names, rows } = await withScope(async (scope) => {
    const receivers = await startPeers(scope);
    const bySize: string[][] = [];
    for (const { name, bytes } of sizes) {
      const delivery = pushOfSize(bytes, { ref: ignoredRef });
      const measured = await perRound(receivers, pushes, ({ hookUrl }) => send(hookUrl, delivery));
      bySize.push([name, ...[...measured.values()].map(cellOf)]);
    }
    return { names: receivers.map(({ name }) => name), rows: bySize };
  });
  return {
    title: "Time by the size of a push",
    text: `The median time to an answer for ${pushes} signed pushes to a branch that is not deployed, one after the other on one connection. Receiving, hashing and parsing grow with the size.`,
    tables: [{ columns: ["Body", ...names], rows }],
    targets: [],
  };
}

function cellOf(sent: readonly Sent[]): string {
  return ms(median(sent.map(({ durationMs }) => durationMs)));
}
