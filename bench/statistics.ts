/** The value that half of `values` are below; of an even number the upper of the two in the middle. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** The value that `percent` of `values` are below, by the nearest rank. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  const rank = Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100));
  return sorted[rank] ?? Number.NaN;
}
