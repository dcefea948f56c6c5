/** Compares versions such as `2.24.0` and `2.9.1-desktop.1` number by number: negative if `one` is older. */
export function compareVersions(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  for (const index of [0, 1, 2]) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function numbersOf(version: string): readonly number[] {
  return version.replace(/^v/, "").split(/[.+-]/, 3).map(Number);
}
