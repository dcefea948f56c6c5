import { parseEnv } from "node:util";
import { ProblemError } from "#problems";
import { readForeignFile } from "./foreign-files.ts";

const mostBytes = 1024 ** 2;

/**
 * Adds the variables of `.env` in `directory` to `env`; those of `env` win.
 *
 * @throws ProblemError `configuration_invalid` if the file is there and cannot be read
 */
export function withDotenv(env: NodeJS.ProcessEnv, directory: string): Record<string, string | undefined> {
  try {
    const text = readForeignFile(`${directory}/.env`, { mostBytes }).toString();
    return { ...parseEnv(text), ...env };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return env;
    const detail = `The file ${directory}/.env is there but cannot be read (${code ?? "unknown error"}).`;
    throw new ProblemError({ code: "configuration_invalid", detail }, error);
  }
}

/** The value of `name` as the text of a `.env` file has it, quotes included; the last one counts. null: it is not set. */
export function rawValue(text: string, name: string): string | null {
  return statementsOf(text).findLast((one) => one.name === name)?.value ?? null;
}

/** The text with `name` set to `raw`: in its last statement, else after the last one of `behind`, else at the end. */
export function withVariable(text: string, name: string, raw: string, behind: string): string {
  const statements = statementsOf(text);
  const at = statements.findLastIndex((one) => one.name === name);
  const found = statements[at];
  if (found !== undefined) return joined(statements.with(at, { ...found, text: `${found.start}${raw}\n` }));
  const neighbour = statements.findLastIndex((one) => one.name === behind);
  const added = { name, start: `${name}=`, value: raw, text: `${name}=${raw}\n` };
  return joined(statements.toSpliced(neighbour < 0 ? statements.length : neighbour + 1, 0, added));
}

/** The text without any statement that sets `name`. */
export function withoutVariable(text: string, name: string): string {
  return joined(statementsOf(text).filter((one) => one.name !== name));
}

/** The text with an ellipsis for every value but those of the variables in `shown`. */
export function withoutValues(text: string, shown: ReadonlySet<string>): string {
  const hidden = statementsOf(text).map((one) =>
    one.value === "" || one.name === null || shown.has(one.name)
      ? one
      : { ...one, text: `${one.start.trimEnd()}…\n` },
  );
  return text.endsWith("\n") ? joined(hidden) : joined(hidden).replace(/\n$/, "");
}

/**
 * `value` as compose, Node, systemd and shells read it alike: plain, or in single quotes as it stands.
 *
 * @returns null if it cannot be written so
 */
export function asWritten(value: string): string | null {
  if (/^[\w./:@,+=-]*$/.test(value)) return value;
  return /['\n\r]/.test(value) ? null : `'${value}'`;
}

/** A variable with its value, or a line that sets nothing. */
interface Statement {
  /** Its line or lines, with the line end. */
  readonly text: string;
  /** null: it sets nothing. */
  readonly name: string | null;
  /** The text before the value. */
  readonly start: string;
  readonly value: string;
}

/**
 * A statement as Node's parseEnv reads it: a value in quotes may have several lines, and a value begins on the next line
 * if only blanks follow on the line of its name.
 */
const statement =
  /(?![ \t\r]*#)(?<key>[^=\n]*)=(?:(?=\r*(?:\n|$))|(?<gap>[ \t\r\n]*)(?<value>"[^"]*"[^\n]*|'[^']*'[^\n]*|`[^`]*`[^\n]*|[^\n]*))\r*\n?|[^\n]*\n|[^\n]+$/gy;

/** The service reads its variables with parseEnv, so an edit must find them in the same places. */
function statementsOf(text: string): readonly Statement[] {
  return Array.from(text.matchAll(statement), ([whole, key, gap = "", value = ""]) => {
    if (key === undefined) return { text: whole, name: null, start: "", value: "" };
    return { text: whole, name: nameOf(key, gap + value), start: `${key}=${gap}`, value: value.trimEnd() };
  });
}

/** parseEnv knows `export` with a blank after it, and only before a variable with a value: else it is part of the name. */
function nameOf(key: string, rest: string): string {
  const name = key.replaceAll("\r", "").replace(/^[ \t]+|[ \t]+$/g, "");
  return rest.trim() === "" ? name : name.replace(/^export [ \t]*/, "");
}

function joined(statements: readonly Statement[]): string {
  const last = statements.length - 1;
  return statements
    .map(({ text }, index) => (index < last && !text.endsWith("\n") ? `${text}\n` : text))
    .join("");
}
