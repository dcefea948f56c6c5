/** The median; the upper one of an even number of values. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The percentile by nearest rank. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const rank = Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100));
  return sorted[rank] ?? Number.NaN;
}
