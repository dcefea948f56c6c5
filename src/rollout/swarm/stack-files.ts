import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ComposeTarget } from "../../platform/compose/commands.ts";
import { composeFileNames, namedFiles } from "../../platform/compose/file-names.ts";

const stackFileNames = ["stack.yaml", "stack.yml", "docker-stack.yaml", "docker-stack.yml"];

/**
 * The files of the stack, which `docker stack deploy` does not look for by itself: those that were given, else
 * COMPOSE_FILE, else `stack.yaml`, `docker-stack.yaml` or the compose file of the project's directory. Files that only
 * compose adds by itself (`compose.override.yaml`) do not belong to a stack.
 */
export function stackFiles(target: ComposeTarget, env: NodeJS.ProcessEnv): readonly string[] {
  if (target.files.length > 0) return target.files;
  const named = namedFiles(env);
  if (named.length > 0) return named;
  const found = [...stackFileNames, ...composeFileNames].find((name) =>
    existsSync(join(target.projectDirectory, name)),
  );
  return found === undefined ? [] : [found];
}
