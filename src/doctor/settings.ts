import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { Environment } from "../config/settings.ts";
import { type Fix, quote } from "./check.ts";

/** The service's settings, their file, and how to change one there. */
export interface Settings {
  readonly env: Environment;
  /** The file with settings, whether it exists or not. */
  readonly file: string;
  readonly isFileThere: boolean;
  /** Why the file cannot be read, or null. */
  readonly fault: string | null;
  /** Gives variable `name` the value `text`, which a shell expands if it is in double quotes. */
  readonly set: (name: string, text: string) => Fix;
  /** Resets variable `name` to its default. */
  readonly unset: (name: string) => Fix;
}

/**
 * Reads the settings as the service does: from the file, below the environment `env`, which wins. The file is `named`, else
 * `.env` in `directory`, else the one of docs/set-up.md, "Under systemd", if it exists.
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
      isInEnvironment(name) ? inEnvironment(`${name}=${text}`) : setCommand(file, name, text),
    unset: (name) => (isInEnvironment(name) ? inEnvironment(`no ${name}`) : removeCommand(file, name)),
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

/** The last line of a name wins, but an earlier one would be confusing, so it is removed. */
function setCommand(file: string, name: string, text: string): string {
  const path = quote(file);
  return `touch ${path} && chmod 600 ${path} && ${removeCommand(file, name)} && printf '${name}=%s\\n' ${text} >> ${path}`;
}

function removeCommand(file: string, name: string): string {
  return `sed -i '/^${name}=/d' ${quote(file)}`;
}

/** A unit, a compose file or a shell has set it: the process cannot know which. */
function inEnvironment(text: string): Fix {
  return { change: `${text} in the environment of the service, which wins over its file` };
}
