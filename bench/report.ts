/** The result of one part of the bench: text, tables, and the aims with their measurements. */
export interface Section {
  readonly title: string;
  /** What was measured, and how. */
  readonly text: string;
  readonly tables: readonly Table[];
  readonly targets: readonly Target[];
}

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export interface Target {
  readonly what: string;
  readonly aim: string;
  readonly measured: string;
  readonly isMet: boolean;
}

/** One section as Markdown. */
export function renderSection({ title, text, tables }: Section): string {
  return [`## ${title}`, text, ...tables.map(renderTable)].join("\n\n");
}

/** All aims with their measurements, as a table in Markdown. */
export function renderTargets(sections: readonly Section[]): string {
  const rows = sections
    .flatMap(({ targets }) => targets)
    .map(({ what, aim, measured, isMet }) => [what, aim, measured, isMet ? "yes" : "**no**"]);
  return renderTable({ columns: ["What", "Aim", "Measured", "Met"], rows });
}

/** A table in Markdown. */
export function renderTable({ columns, rows }: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Milliseconds for a table, with two significant digits below 10. */
export function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

/** Bytes as megabytes, of 10^6 bytes each. */
export function mb(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}

/** A whole number with thousands separators: 12,345. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** The ratio of two values: 2.10 ×. */
export function times(value: number, other: number): string {
  return `${(value / other).toFixed(2)} ×`;
}
