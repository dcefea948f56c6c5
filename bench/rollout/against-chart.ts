import { type PushMeasurement, type Summary, summarize } from "./render-against.ts";

const columns = { peer: 4, live: 300, longest: 520, failed: 740 } as const;
const width = 880;
const headHeight = 24;
const rowHeight = 26;
const titleHeight = 40;
const barWidth = 140;
/** A user notices a wait of this length. */
const noticedMs = 1_000;

/**
 * A chart of the comparison, for light and dark pages: for each way, bars for the time to live and the longest wait of a
 * request, and the failed requests in words. Each group has scales of its own.
 */
export function chartOf(measurements: readonly PushMeasurement[]): string {
  const groups = [
    ...Map.groupBy(summarize(measurements.filter(({ kind }) => kind !== "first push")), titleOf),
  ].toSorted(byKind);
  let top = headHeight;
  const parts = groups.flatMap(([title, rows]) => {
    const heading = textAt(columns.peer, top + 26, title, "title");
    top += titleHeight;
    const lines = rows.flatMap((row, index) => rowOf(row, rows, top + index * rowHeight));
    top += rows.length * rowHeight;
    return [heading, ...lines];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img" aria-label="Time from push to live, longest wait of a request, and failed requests">`,
    `<style>${style}</style>`,
    textAt(columns.live, 16, "from push to live", "note"),
    textAt(columns.longest, 16, "longest wait of a user", "note"),
    textAt(columns.failed, 16, "failed requests", "note"),
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

const style = [
  "text{font:14px system-ui,sans-serif;fill:#1f2328}text.title{font-weight:600}text.note{fill:#59636e}text.lost{fill:#c11c5c;font-weight:600}",
  ".own{fill:#c2410c}.other{fill:#9aa4af}",
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}text.note{fill:#9198a1}text.lost{fill:#ff7aa8}.own{fill:#fb923c}.other{fill:#59636e}}",
].join("");

function titleOf({ kind, services }: Summary): string {
  if (kind === "crashes") return "A version that crashes at its start";
  return services === 1 ? "A project with one service" : `A project with ${services} services`;
}

/** What goes well comes first. */
function byKind([, [one]]: [string, Summary[]], [, [other]]: [string, Summary[]]): number {
  return Number(one?.kind === "crashes") - Number(other?.kind === "crashes");
}

function rowOf(row: Summary, group: readonly Summary[], top: number): readonly string[] {
  const { peer, liveMs, longestMs, failed, requests } = row;
  const longest = (of: (one: Summary) => number) => Math.max(...group.map(of));
  const colour = peer === "Hotpush" ? "own" : "other";
  const counted = `${failed.toLocaleString("en")} of ${requests.toLocaleString("en")}`;
  const waited = longestMs >= noticedMs ? "lost" : "";
  return [
    textAt(columns.peer, top + 13, peer),
    ...(liveMs === null
      ? []
      : bar(
          columns.live,
          top,
          liveMs,
          longest((one) => one.liveMs ?? 0),
          colour,
        )),
    ...bar(
      columns.longest,
      top,
      longestMs,
      longest((one) => one.longestMs),
      colour,
      waited,
    ),
    textAt(columns.failed, top + 13, counted, failed > 0 ? "lost" : ""),
  ];
}

function bar(left: number, top: number, ms: number, longestMs: number, colour: string, textClass = "") {
  const length = Math.max(2, Math.round((ms / longestMs) * barWidth));
  const text = `${(ms / 1_000).toFixed(ms < 100 ? 2 : 1)} s`;
  return [
    `<rect class="${colour}" x="${left}" y="${top + 2}" width="${length}" height="12" rx="3"/>`,
    textAt(left + length + 8, top + 13, text, textClass),
  ];
}

function textAt(left: number, top: number, text: string, textClass = ""): string {
  return `<text${textClass && ` class="${textClass}"`} x="${left}" y="${top}">${text}</text>`;
}
