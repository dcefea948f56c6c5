import { type PushMeasurement, type Summary, summarize } from "./render-against.ts";

const width = 760;
const labelWidth = 250;
const rowHeight = 30;
const groupHeight = 44;
const barHeight = 12;

/** A chart of the comparison: a bar for the time to live, and the failed requests in words. It suits light and dark pages. */
export function chartOf(measurements: readonly PushMeasurement[]): string {
  const summaries = summarize(measurements).filter(({ kind }) => kind === "good");
  const groups = [...Map.groupBy(summaries, ({ services }) => services)];
  const longestMs = Math.max(...summaries.map(({ liveMs }) => liveMs ?? 0));
  let top = 0;
  const parts = groups.flatMap(([services, rows]) => {
    const title = services === 1 ? "A project with one service" : `A project with ${services} services`;
    const heading = `<text class="title" x="0" y="${top + 26}">${title}: from push to live</text>`;
    top += groupHeight;
    const bars = rows.map((row, index) => bar(row, top + index * rowHeight, longestMs));
    top += rows.length * rowHeight + 8;
    return [heading, ...bars];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img" aria-label="Failed requests and the time from push to live">`,
    `<style>${style}</style>`,
    ...parts,
    "</svg>",
    "",
  ].join("\n");
}

const style = [
  "text{font:14px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600}.note{fill:#59636e}",
  ".own{fill:#c2410c}.other{fill:#9aa4af}.lost{fill:#c11c5c;font-weight:600}",
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}.own{fill:#fb923c}.other{fill:#59636e}.lost{fill:#ff7aa8}}",
].join("");

function bar({ peer, liveMs, failed, requests }: Summary, top: number, longestMs: number): string {
  const length = Math.max(2, ((liveMs ?? 0) / longestMs) * (width - labelWidth - 260));
  const end = labelWidth + length + 10;
  const time = `${((liveMs ?? 0) / 1_000).toFixed(1)} s`;
  const lost = `${failed.toLocaleString("en")} of ${requests.toLocaleString("en")} requests failed`;
  return [
    `<text x="0" y="${top + 11}">${peer}</text>`,
    `<rect class="${peer === "Hotpush" ? "own" : "other"}" x="${labelWidth}" y="${top}" width="${length.toFixed(0)}" height="${barHeight}" rx="3"/>`,
    `<text x="${end.toFixed(0)}" y="${top + 11}">${time} <tspan class="${failed > 0 ? "lost" : "note"}" dx="8">${lost}</tspan></text>`,
  ].join("\n");
}
