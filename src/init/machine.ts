import { readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { SetupError } from "./setup-error.ts";

/** What of this machine matters to Hotpush in a container. */
export interface Machine {
  readonly dockerSocket: string;
  /** The group that may use it. */
  readonly dockerGroup: number;
  /** `uid:gid` of the container's user: whom the checkout belongs to where the image knows them, else root. */
  readonly user: string;
  readonly home: "/root" | "/home/node";
  /** Whether the checkout is another user's, so that files made by a deployment will be root's. */
  readonly isForeignOwner: boolean;
  /** Where this user's ssh keys are. */
  readonly sshDirectory: string;
}

/** The user that the image has beside root. */
const imageUid = 1000;

/**
 * Finds it out for the checkout in `root`; a user that a person has chosen for the container counts.
 *
 * @throws SetupError where Docker is reached in a way that a container cannot share
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

/** Whether something on this machine listens on the TCP port `port`, whichever address it is bound to. */
export function isPortTaken(port: number): boolean {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  return ["/proc/net/tcp", "/proc/net/tcp6"].some((table) => {
    const lines = readTable(table).split("\n");
    // sl, local address, remote address, state: 0A is listening
    return lines.some((line) => new RegExp(`^\\s*\\d+: [0-9A-F]+:${wanted} \\S+ 0A `).test(line));
  });
}

function readTable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
