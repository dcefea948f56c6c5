const widest = 80;

/**
 * Breaks text into lines that fit the terminal, at most 80 columns, between words only: a command or an address that is
 * longer stays whole, so that it can be copied. What goes to a pipe or a file is not broken.
 *
 * @param indent what each line but the first begins with
 */
export function fold(text: string, { columns }: { readonly columns?: number }, indent = ""): string {
  if (columns === undefined) return text;
  const most = Math.min(widest, columns);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > most) {
      lines.push(line);
      line = `${indent}${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
