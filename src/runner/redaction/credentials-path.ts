import { join } from "node:path";

/**
 * The file in which git keeps a password where the home directory cannot, as the doctor says in a container: in the state
 * directory, which stays, and is in no build context of an image.
 */
export function credentialsPath(statePath: string): string {
  return join(statePath, "git-credentials");
}
