import { join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** `STATE_PATH`, or else the directory in which the service keeps its state. */
export function stateDirectoryOf(env: Environment): string {
  return env.STATE_PATH || defaultStatePath(env);
}

/** The state directory by the XDG base directory specification: in `$HOME/.local/state` by default. */
export function defaultStatePath({ XDG_STATE_HOME, HOME }: Environment): string {
  return `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}

/**
 * The file in which git keeps a password if the home directory cannot, as the doctor advises in a container. The state
 * directory persists, and is in no build context of an image.
 */
export function credentialsPath(statePath: string): string {
  return join(statePath, "git-credentials");
}
