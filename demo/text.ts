/** The longest line of the output. */
export const widthColumns = 80;

/** Shortens `text` to `columns`, with three dots at the end. */
export function fit(text: string, columns: number): string {
  return text.length <= columns ? text : `${text.slice(0, columns - 3)}...`;
}

/** Breaks `text` between words into lines of at most `columns`. */
export function wrap(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && `${last} ${word}`.length <= columns) lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}

/** A duration with two decimals, so that durations align: `0.35 s`. */
export function seconds(durationMs: number): string {
  return `${(durationMs / 1_000).toFixed(2)} s`;
}

/** Lays rows out in columns as wide as their widest cell; the columns in `rightColumns` are right-aligned. */
export function table(
  rows: readonly (readonly string[])[],
  rightColumns: readonly number[],
): readonly string[] {
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const columns = Math.max(...rows.map((other) => other[column]?.length ?? 0));
        return rightColumns.includes(column) ? cell.padStart(columns) : cell.padEnd(columns);
      })
      .join("   ")
      .trimEnd(),
  );
}
