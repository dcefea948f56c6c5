import { delimiter } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** In the order in which compose looks for them: `DefaultFileNames` in compose-go, cli/options.go. */
export const composeFileNames = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/** The files that COMPOSE_FILE names, as written there; empty if it is not set. */
export function namedFiles(env: Environment): readonly string[] {
  return (env.COMPOSE_FILE ?? "").split(separatorOf(env)).filter(Boolean);
}

/** The value of COMPOSE_FILE that names `files`. */
export function namingFiles(files: readonly string[], env: Environment): string {
  return files.join(separatorOf(env));
}

/** https://docs.docker.com/compose/how-tos/environment-variables/envvars/#compose_path_separator */
function separatorOf({ COMPOSE_PATH_SEPARATOR }: Environment): string {
  return COMPOSE_PATH_SEPARATOR || delimiter;
}
