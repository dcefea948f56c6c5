const unitsMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/**
 * Reads a duration as Go writes it and compose prints it: `1m30s`, `500ms`, `2h45m0.5s`.
 *
 * @returns milliseconds, or null where `text` is no such duration
 */
export function parseGoDurationMs(text: string): number | null {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== text) return null;
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * (unitsMs[unit ?? ""] ?? 0), 0);
}
