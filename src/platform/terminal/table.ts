/** Rows as lines, each column as wide as its widest cell; the first row is underlined. */
export function formatTable(rows: readonly (readonly string[])[]): readonly string[] {
  const [header, ...rest] = rows.map((row) => [...row]);
  if (!header) return [];
  const widths = header.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [line(header), widths.map((width) => "─".repeat(width)).join("  "), ...rest.map(line)];
}
