/** The words of `text` in lines of at most `width` columns; a longer word gets a line of its own. */
export function wrapWords(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/**
 * A command in lines of at most `width` columns that can be pasted as they stand: a shell goes on after `&&`, `||` and
 * `|`, and after a backslash between words. What is in quotes is never broken. Where it takes several lines, each `&&`
 * ends one.
 */
export function wrapCommand(command: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of shellWords(command)) {
    const last = lines.at(-1);
    const margin = " \\".length;
    const isOver = command.length > width && last?.endsWith("&&");
    if (last !== undefined && !isOver && last.length + 1 + word.length + margin <= width) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else lines.push(lines.length === 0 ? word : `  ${word}`);
  }
  return lines.map((line, index) =>
    index === lines.length - 1 || /(?:&&|\|)$/.test(line) ? line : `${line} \\`,
  );
}

function shellWords(command: string): readonly string[] {
  return command.match(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/g) ?? [];
}
