import { join } from "node:path";

/** The state directory by the XDG base directory specification: in `$HOME/.local/state` by default. */
export function defaultStatePath({
  XDG_STATE_HOME,
  HOME,
}: Readonly<Record<string, string | undefined>>): string {
  return `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}

/**
 * The file in which git keeps a password if the home directory cannot, as the doctor advises in a container. The state
 * directory persists, and is in no build context of an image.
 */
export function credentialsPath(statePath: string): string {
  return join(statePath, "git-credentials");
}
