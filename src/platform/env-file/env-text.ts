/**
 * The value of `name` in the text of a `.env` file as it is written there, quotes and all; the last one counts, as for
 * whoever reads such a file. null: it is not set.
 */
export function rawValue(text: string, name: string): string | null {
  const line = text.split("\n").findLast((one) => assignment(name).test(one));
  return line === undefined ? null : line.replace(assignment(name), "").trimEnd();
}

/** The text with `name` set to `raw`: in the place of its last line, else behind that of `behind`, else at the end. */
export function withVariable(text: string, name: string, raw: string, behind: string): string {
  const lines = text.split("\n");
  const at = lines.findLastIndex((line) => assignment(name).test(line));
  if (at >= 0) return lines.with(at, `${assignment(name).exec(lines[at] ?? "")?.[0]}${raw}`).join("\n");
  const neighbour = lines.findLastIndex((line) => assignment(behind).test(line));
  if (neighbour >= 0) return lines.toSpliced(neighbour + 1, 0, `${name}=${raw}`).join("\n");
  return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${name}=${raw}\n`;
}

/** The text without any line that sets `name`. */
export function withoutVariable(text: string, name: string): string {
  return text
    .split("\n")
    .filter((line) => !assignment(name).test(line))
    .join("\n");
}

/**
 * `value` as compose, Node, systemd and shells read it alike: plain, or in single quotes as it stands.
 *
 * @returns null where it cannot be written so
 */
export function asWritten(value: string): string | null {
  if (/^[\w./:@,+=-]*$/.test(value)) return value;
  return /['\n\r]/.test(value) ? null : `'${value}'`;
}

function assignment(name: string): RegExp {
  return new RegExp(`^\\s*(?:export\\s+)?${name}\\s*=\\s*`);
}
