import { stripVTControlCharacters } from "node:util";

/** Emoji, and the scripts of East Asia whose characters take two columns (Unicode's UAX #11, Wide and Fullwidth). */
const wide =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]/u;

/** Text in which each character takes one column: no need to segment it, which is slow. */
const plain = /^[\x20-\u02ff\u2026]*$/;

/** How many columns of a terminal `text` takes; it must have no control characters. */
export function columnsOf(text: string): number {
  if (plain.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of graphemesOf(text)) columns += wide.test(segment) ? 2 : 1;
  return columns;
}

/** `text` if it takes at most `most` columns, else as much of it as fits before an ellipsis. */
export function fit(text: string, most: number): string {
  if (plain.test(text)) return text.length <= most ? text : cut(text, most - 1);
  let columns = 0;
  let fitting = 0;
  for (const { segment, index } of graphemesOf(text)) {
    if (columns <= most - 1) fitting = index;
    columns += wide.test(segment) ? 2 : 1;
    if (columns > most) return cut(text, fitting);
  }
  return text;
}

function cut(text: string, at: number): string {
  return `${text.slice(0, Math.max(0, at)).trimEnd()}…`;
}

/** Made when it is first needed: that takes longer than all else that a command does. */
let segmenter: Intl.Segmenter | undefined;

function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return segmenter.segment(text);
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
