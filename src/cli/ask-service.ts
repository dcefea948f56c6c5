import { existsSync, readFileSync } from "node:fs";
import { parseEnv } from "node:util";
import { NotRunningError, RefusedError } from "../control/client.ts";
import { socketPath } from "../control/socket-path.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { wrapText } from "../platform/terminal/wrap.ts";
import { stateDirectoryOf } from "../rollout/state.ts";
import { refuse } from "./command.ts";

/** Where the container and the systemd unit keep it; a person's shell does not know of either. */
const usualStatePath = "/var/lib/hotpush";

/**
 * Where the service keeps its state: as the environment says, else the `.env` of the working directory, as it does;
 * where neither says anything, the usual places.
 *
 * @param usual where to look last
 */
export function statePathOf(env: NodeJS.ProcessEnv, usual = usualStatePath): string {
  const given = { ...dotenvHere(), ...env };
  const path = stateDirectoryOf(given);
  return given.STATE_PATH || existsSync(socketPath(path)) || !existsSync(socketPath(usual)) ? path : usual;
}

/**
 * Runs `work`, which asks the service.
 *
 * @returns its exit code, or 1 where the service could not be asked or refused, which is said on standard error
 */
export async function asking(
  env: NodeJS.ProcessEnv,
  work: (statePath: string) => Promise<number>,
): Promise<number> {
  try {
    return await work(statePathOf(env));
  } catch (error) {
    if (!(error instanceof NotRunningError || error instanceof RefusedError)) throw error;
    return refuse(fitted(error.message, env));
  }
}

/** Who runs this command, for the record of what was asked for: the person behind sudo, if there is one. */
export function reportedUser(env: NodeJS.ProcessEnv): { readonly requestedBy: string | undefined } {
  return { requestedBy: env.SUDO_USER || env.USER };
}

/** What cannot be read here may be none of our business: then the environment alone counts. */
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
