import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { stateDirectoryOf } from "../config/state-path.ts";
import { callService, NotRunningError, RefusedError } from "../control/client.ts";
import { socketPath } from "../control/socket-path.ts";
import { openTerminal, type Terminal } from "../platform/terminal/terminal.ts";
import { wrapText } from "../platform/terminal/wrap.ts";
import { refuse } from "./command.ts";

/** What a command that calls the service works with. */
export interface ServiceAccess {
  readonly env: NodeJS.ProcessEnv;
  readonly statePath: string;
  /** On standard output. */
  readonly terminal: Terminal;
  /** `callService` with this `statePath`. */
  readonly call: <Answer>(method: "GET" | "POST", path: string, body?: object) => Promise<Answer>;
}

/**
 * Runs `work`, which calls the service.
 *
 * @returns its exit code; 1 if the service could not be reached or refused, which is printed on standard error
 */
export async function withService(
  env: NodeJS.ProcessEnv,
  work: (service: ServiceAccess) => Promise<number>,
): Promise<number> {
  try {
    const statePath = statePathOf(env);
    const terminal = openTerminal(process.stdout, env);
    return await work({ env, statePath, terminal, call: (...request) => callService(statePath, ...request) });
  } catch (error) {
    if (!(error instanceof NotRunningError || error instanceof RefusedError)) throw error;
    return refuse(fitted(error.message, env));
  }
}

/** The container and the systemd unit keep the state here; a person's shell knows of neither. */
const usualStatePath = "/var/lib/hotpush";

/**
 * The state directory of the service: from the environment or the `.env` of the working directory, as the service finds
 * it, else the usual ones.
 *
 * @param usual the directory to try last
 */
export function statePathOf(env: NodeJS.ProcessEnv, usual = usualStatePath): string {
  const given = { ...dotenvHere(), ...env };
  const path = stateDirectoryOf(given);
  return given.STATE_PATH || existsSync(socketPath(path)) || !existsSync(socketPath(usual)) ? path : usual;
}

/** An unreadable `.env` may belong to something else; then the environment alone counts. */
function dotenvHere(): NodeJS.ProcessEnv {
  try {
    return parseEnv(readFileSync(".env", "utf8")) as NodeJS.ProcessEnv;
  } catch {
    return {};
  }
}

/** One line for programs and logs; on a terminal as many as it takes, broken at words. */
function fitted(text: string, env: NodeJS.ProcessEnv): string {
  const { isInteractive, columns } = openTerminal(process.stderr, env);
  const prefix = "hotpush: ".length;
  return isInteractive ? wrapText(text, columns - prefix - 1).join(`\n${" ".repeat(prefix)}`) : text;
}

/** Who runs this command, for the record of a request: the person behind sudo, if there is one. */
export function reportedUser(env: NodeJS.ProcessEnv): { readonly requestedBy: string | undefined } {
  return { requestedBy: env.SUDO_USER || env.USER };
}
