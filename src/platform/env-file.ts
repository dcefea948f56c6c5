import { parseEnv } from "node:util";
import { CommandError, ProblemError } from "#problems";
import { controllerOf, readForeignFile } from "./foreign-files.ts";

const mostBytes = 1024 ** 2;

/**
 * The variables in the text of a `.env` file, as compose and systemd read them: an empty value with a blank after it is empty. Node
 * would take the next line for the value.
 */
export function parseEnvFile(text: string): NodeJS.Dict<string> {
  return parseEnv(text.replace(/=[ \t]+(?=\r?$)/gm, "="));
}

/**
 * Adds the variables of `.env` in `directory` to `env`; those of `env` win.
 *
 * @throws ProblemError `configuration_invalid` if the file is there and cannot be read
 */
export function withDotenv(env: NodeJS.ProcessEnv, directory: string): Record<string, string | undefined> {
  try {
    const text = readForeignFile(`${directory}/.env`, { mostBytes }).toString();
    return { ...parseEnvFile(text), ...env };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return env;
    const detail = `The file ${directory}/.env is there but cannot be read (${code ?? "unknown error"}).`;
    throw new ProblemError({ code: "configuration_invalid", detail }, error);
  }
}

/** Like `withDotenv`, for commands: root does not believe a `.env` that another user can change. */
export function withTrustedDotenv(env: NodeJS.ProcessEnv, directory: string): ReturnType<typeof withDotenv> {
  return controllerOf(`${directory}/.env`) === null ? withDotenv(env, directory) : env;
}

/** The value of `name` as the text of a `.env` file has it, quotes included; the last one counts. null: it is not set. */
export function rawValue(text: string, name: string): string | null {
  const line = text.split("\n").findLast((one) => nameIn(one) === name);
  return line?.slice(line.indexOf("=") + 1).trim() ?? null;
}

/**
 * The text with `name` set to `raw`: in its last line, else at the end.
 *
 * @throws CommandError if that would change another variable
 */
export function withVariable(text: string, name: string, raw: string): string {
  const lines = text.split("\n");
  const at = lines.findLastIndex((one) => nameIn(one) === name);
  if (at < 0 && lines.at(-1) !== "") lines.push("");
  const place = at < 0 ? lines.length - 1 : at;
  const start = at < 0 ? `${name}=` : lines[at]?.slice(0, lines[at].indexOf("=") + 1);
  return checked(text, lines.toSpliced(place, at < 0 ? 0 : 1, `${start}${raw}`).join("\n"), name);
}

/** The text without any line that sets `name`. @throws as above */
export function withoutVariable(text: string, name: string): string {
  const lines = text.split("\n").filter((one) => nameIn(one) !== name);
  return checked(text, lines.join("\n"), name);
}

/** The text with an ellipsis for every value but those of the variables in `shown`, and for each line that sets nothing. */
export function withoutValues(text: string, shown: ReadonlySet<string>): string {
  // A line within a value of several lines cannot be told from a setting or a comment.
  const isPlain = Object.values(parseEnvFile(text)).every((value) => !value?.includes("\n"));
  const masked = (line: string) => {
    const name = nameIn(line);
    const isShown = name === null ? /^\s*#/.test(line) : shown.has(name);
    if (/^\s*$|^[^#'"`]*=\s*$/.test(line) || (isPlain && isShown)) return line;
    return name === null ? "…" : `${line.slice(0, line.indexOf("=") + 1)}…`;
  };
  return text.split("\n").map(masked).join("\n");
}

/** The name of the variable that a line sets, as Node's parseEnv reads it. */
function nameIn(line: string): string | null {
  return /^[ \t]*(?:export +)?([^\s#=][^=]*?)[ \t]*=/.exec(line)?.[1] ?? null;
}

/** Lines are edited, but a value may have several: every other variable must keep its value. */
function checked(before: string, after: string, name: string): string {
  const others = (text: string) =>
    JSON.stringify({ ...parseEnvFile(text), [name]: undefined, [`export ${name}`]: undefined });
  const isWhole = !parseEnvFile(before)[name]?.includes("\n");
  if (isWhole && others(before) === others(after)) return after;
  throw new CommandError(
    `${name} cannot be set without a change of what stands beside it. Set it in the file by hand.`,
  );
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
