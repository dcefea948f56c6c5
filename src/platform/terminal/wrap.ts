import { stripVTControlCharacters } from "node:util";

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
  return columns === undefined ? text : wrapText(text, Math.min(widest, columns), indent).join("\n");
}

function leadingSpaces(text: string): string {
  return /^ */.exec(text)?.[0] ?? "";
}
