import { join } from "node:path";

/** XDG base directory specification: state of a program that outlives it, `$HOME/.local/state` by default. */
export function defaultStatePath({
  XDG_STATE_HOME,
  HOME,
}: Readonly<Record<string, string | undefined>>): string {
  return `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}

/**
 * The file in which git keeps a password where the home directory cannot, as the doctor says in a container: in the state
 * directory, which stays, and is in no build context of an image.
 */
export function credentialsPath(statePath: string): string {
  return join(statePath, "git-credentials");
}
