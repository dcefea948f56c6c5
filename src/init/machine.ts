import { statSync } from "node:fs";
import { SetupError } from "./setup-error.ts";

/** The facts of this machine that matter to Hotpush in a container. */
export interface Machine {
  readonly dockerSocket: string;
  /** The id of the group that may use it. */
  readonly dockerGroup: number;
}

/**
 * Reads them.
 *
 * @throws SetupError if DOCKER_HOST is not a Unix socket, which a container could share
 */
export function findMachine(env: NodeJS.ProcessEnv): Machine {
  const dockerSocket = socketPath(env.DOCKER_HOST);
  return {
    dockerSocket,
    dockerGroup: statSync(dockerSocket, { throwIfNoEntry: false })?.gid ?? 0,
  };
}

function socketPath(dockerHost: string | undefined): string {
  if (!dockerHost) return "/var/run/docker.sock";
  if (dockerHost.startsWith("unix://")) return dockerHost.slice("unix://".length);
  throw new SetupError(
    `DOCKER_HOST is ${dockerHost}. Hotpush runs beside the containers that it deploys: run this on the server itself, without DOCKER_HOST.`,
  );
}
