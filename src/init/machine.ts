import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { SetupError } from "./setup-error.ts";

/** The facts of this machine that matter to Hotpush in a container. */
export interface Machine {
  readonly dockerSocket: string;
  /** The id of the group that may use it. */
  readonly dockerGroup: number;
  /** `uid:gid` of the container's user: the owner of the checkout if the image has that user, else root. */
  readonly user: string;
  readonly home: "/root" | "/home/node";
  /** Whether the checkout belongs to another user, so that files made by a deployment will belong to root. */
  readonly isForeignOwner: boolean;
  /** The directory of this user's ssh keys. */
  readonly sshDirectory: string;
}

/** The user of the image beside root. */
const imageUid = 1000;

/**
 * Reads them for the checkout in `root`.
 *
 * @param chosenUser `uid:gid` that a person has set for the container
 * @throws SetupError if DOCKER_HOST is not a Unix socket, which a container could share
 */
export function findMachine(root: string, env: NodeJS.ProcessEnv, chosenUser: string | undefined): Machine {
  const dockerSocket = socketPath(env.DOCKER_HOST);
  const { uid, gid } = statSync(root);
  const user = chosenUser || (uid === imageUid ? `${uid}:${gid}` : "0:0");
  return {
    dockerSocket,
    dockerGroup: statSync(dockerSocket, { throwIfNoEntry: false })?.gid ?? 0,
    user,
    home: user.startsWith(`${imageUid}:`) ? "/home/node" : "/root",
    isForeignOwner: !user.startsWith(`${uid}:`),
    sshDirectory: join(env.HOME || homedir(), ".ssh"),
  };
}

function socketPath(dockerHost: string | undefined): string {
  if (!dockerHost) return "/var/run/docker.sock";
  if (dockerHost.startsWith("unix://")) return dockerHost.slice("unix://".length);
  throw new SetupError(
    `DOCKER_HOST is ${dockerHost}. Hotpush runs beside the containers that it deploys: run this on the server itself, without DOCKER_HOST.`,
  );
}
