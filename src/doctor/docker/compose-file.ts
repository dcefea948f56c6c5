import { existsSync } from "node:fs";
import { join } from "node:path";

const names = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/** Whether the repository is deployed with compose, told as examples/deploy.sh tells it. */
export function hasComposeFile(repoPath: string, env: Readonly<Record<string, string | undefined>>): boolean {
  return Boolean(env.COMPOSE_FILE) || names.some((name) => existsSync(join(repoPath, name)));
}
