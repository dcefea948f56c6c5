const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** The longest duration for a timer: above 2^31 - 1 ms Node fires at once. */
const longestMs = 24 * unitsMs.h;

/**
 * Reads a duration such as `30m`, `90s`, `1h` or `500ms`, at most 24 h. A number needs a unit, so that nobody has to guess
 * it; `0` does not.
 *
 * @returns milliseconds, or null if `text` is no such duration
 */
export function parseDurationMs(text: string): number | null {
  if (text === "0") return 0;
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  if (!match) return null;
  const ms = Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
  return ms <= longestMs ? ms : null;
}

/** Formats a duration for a person: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = Math.round(ms / 100) / 10;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(ms / unitsMs.m);
  if (minutes < 60) return joined(minutes, "min", Math.floor((ms % unitsMs.m) / 1_000), "s");
  return joined(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
