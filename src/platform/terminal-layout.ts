import { stripVTControlCharacters } from "node:util";

/** How many columns of a terminal `text` takes, if each character takes one. */
export function columnsOf(text: string): number {
  return [...text].length;
}

/** `text` if it takes at most `most` columns, else as much of it as fits before an ellipsis. */
export function fit(text: string, most: number): string {
  const characters = [...text];
  if (characters.length <= most) return text;
  return `${characters
    .slice(0, Math.max(0, most - 1))
    .join("")
    .trimEnd()}…`;
}

const widest = 80;

/**
 * Breaks `text` at spaces into lines of at most `columns`, colours not counted. A longer word stays whole, so that a command
 * or an address can be copied.
 *
 * @param indent what each line but the first begins with; by default the spaces that the text begins with
 */
export function wrapText(text: string, columns: number, indent = leadingSpaces(text)): readonly string[] {
  const [first = "", ...words] = text.trimStart().split(" ");
  const lines: string[] = [];
  let line = leadingSpaces(text) + first;
  for (const word of words) {
    const longer = `${line} ${word}`;
    if (stripVTControlCharacters(longer).length <= columns) line = longer;
    else {
      lines.push(line);
      line = indent + word;
    }
  }
  return [...lines, line];
}

/**
 * Breaks `text` into lines that fit a terminal, at most 80 columns. Text for a pipe or a file is not broken.
 *
 * @param indent what each line but the first begins with
 */
export function wrapFor({ columns }: { readonly columns?: number }, text: string, indent = ""): string {
  // A terminal that does not know its width says 0.
  return columns === undefined
    ? text
    : wrapText(text, Math.min(widest, columns || widest), indent).join("\n");
}

function leadingSpaces(text: string): string {
  return /^ */.exec(text)?.[0] ?? "";
}

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
