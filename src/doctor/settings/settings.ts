import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { Cure } from "../check.ts";
import { quote } from "../quote.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where the service gets its settings from, and how to change one there. */
export interface Settings {
  readonly env: Environment;
  /** The file with settings, whether it is there yet or not. */
  readonly file: string;
  readonly isFileThere: boolean;
  /** Why the file cannot be read, or null. */
  readonly fault: string | null;
  /** What gives variable `name` the value `text`, which a shell expands where it is in double quotes. */
  readonly set: (name: string, text: string) => Cure;
  /** What makes variable `name` fall back to its default. */
  readonly unset: (name: string) => Cure;
}

/**
 * Reads the settings as the service does: from the file, under the environment `env`, which wins. The file is the one
 * that was named, else `.env` in `directory`, else the one of docs/set-up.md, "By hand", where it is there.
 */
export function readSettings(env: NodeJS.ProcessEnv, directory: string, named?: string): Settings {
  const file = named ?? chooseFile(directory);
  const { values, fault } = readFile(file);
  const isInEnvironment = (name: string) => env[name] !== undefined;
  return {
    env: { ...values, ...env },
    file,
    isFileThere: existsSync(file),
    fault,
    set: (name, text) =>
      isInEnvironment(name) ? inEnvironment(`${name}=${text}`) : { command: setCommand(file, name, text) },
    unset: (name) =>
      isInEnvironment(name) ? inEnvironment(`no ${name}`) : { command: removeCommand(file, name) },
  };
}

const systemdFile = "/etc/hotpush.env";

function chooseFile(directory: string): string {
  const dotenv = join(directory, ".env");
  return !existsSync(dotenv) && existsSync(systemdFile) ? systemdFile : dotenv;
}

function readFile(file: string): { readonly values: Environment; readonly fault: string | null } {
  try {
    return { values: parseEnv(readFileSync(file, "utf8")), fault: null };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return { values: {}, fault: code === "ENOENT" ? null : `${file} cannot be read (${code}).` };
  }
}

/** The last line of a name wins, but one that is left over is confusing: it goes. */
function setCommand(file: string, name: string, text: string): string {
  const path = quote(file);
  return `touch ${path} && chmod 600 ${path} && ${removeCommand(file, name)} && printf '${name}=%s\\n' ${text} >> ${path}`;
}

function removeCommand(file: string, name: string): string {
  return `sed -i '/^${name}=/d' ${quote(file)}`;
}

/** It was given to the process itself, by a unit, a compose file or a shell: nobody can tell which from in here. */
function inEnvironment(text: string): Cure {
  return { change: `${text} in the environment of the service, which wins over its file` };
}
