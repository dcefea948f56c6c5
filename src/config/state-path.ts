import { join } from "node:path";

/** The state directory: STATE_PATH, else by the XDG base directory specification (`$HOME/.local/state` by default). */
export function stateDirectoryOf(env: Readonly<Record<string, string | undefined>>): string {
  const { STATE_PATH, XDG_STATE_HOME, HOME } = env;
  return STATE_PATH || `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}

/**
 * The file in which git keeps a password if the home directory cannot, as the doctor advises in a container. The state
 * directory persists, and is in no build context of an image.
 */
export function credentialsPath(statePath: string): string {
  return join(statePath, "git-credentials");
}

/** The operator's socket of the service whose state is in `statePath`. */
export function operatorSocketPath(statePath: string): string {
  return join(statePath, "control.sock");
}
