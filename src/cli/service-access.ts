import { existsSync } from "node:fs";
import { stateDirectoryOf } from "../config/state-path.ts";
import { callService } from "../control/client.ts";
import { controlSocketPath } from "../control/control-socket.ts";
import type { DeploymentJson } from "../control/deployment-json.ts";
import { withDotenv } from "../platform/env-file.ts";
import { openTerminal, type Terminal } from "../platform/terminal/terminal.ts";

/** What a command that calls the service works with. */
export interface ServiceAccess {
  readonly env: NodeJS.ProcessEnv;
  readonly statePath: string;
  /** On standard output. */
  readonly terminal: Terminal;
  readonly get: <Answer>(path: string) => Promise<Answer>;
  /** Asks for a deployment, or for the end of one, in the name of the person who runs this command. */
  readonly request: (path: string, body?: object) => Promise<DeploymentJson>;
}

/** The functions throw as `callService`. */
export function accessService(env: NodeJS.ProcessEnv): ServiceAccess {
  const statePath = statePathOf(env);
  return {
    env,
    statePath,
    terminal: openTerminal(process.stdout, env),
    get: (path) => callService(statePath, "GET", path),
    async request(path, body) {
      // The person behind sudo, if there is one.
      const requestedBy = env.SUDO_USER || env.USER;
      const answer = callService<{ deployment: DeploymentJson }>(statePath, "POST", path, {
        ...body,
        requestedBy,
      });
      return (await answer).deployment;
    },
  };
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
  const given = withDotenvHere(env);
  const path = stateDirectoryOf(given);
  return given.STATE_PATH || existsSync(controlSocketPath(path)) || !existsSync(controlSocketPath(usual))
    ? path
    : usual;
}

/** An unreadable `.env` may belong to something else; then the environment alone counts. */
function withDotenvHere(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return withDotenv(env, ".");
  } catch {
    return env;
  }
}
