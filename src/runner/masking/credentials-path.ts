import { join } from "node:path";

/** The file in which git keeps a password where the home directory cannot: what the doctor says in a container. */
export function credentialsPath(repoPath: string): string {
  return join(repoPath, ".git", "hotpush-credentials");
}
