import { delimiter } from "node:path";
import type { Argv } from "../run-command.ts";

/** Which compose project a command is about. Without files, compose looks for its own in the project's directory. */
export interface ComposeTarget {
  readonly projectDirectory: string;
  /** In a container: the path of that directory in the container, which may differ. */
  readonly directoryHere?: string;
  readonly files: readonly string[];
  /** Set if it is not the name that compose derives from the files and the directory. */
  readonly projectName?: string;
}

/** The whole model as JSON, with variables and env files resolved. */
export function configCommand(target: ComposeTarget): Argv {
  return [...compose(target), "config", "--format", "json"];
}

/** The names of all images in the compose files, one per line, including services in inactive profiles. */
export function imagesCommand(target: ComposeTarget): Argv {
  return [...compose(target), "--profile", "*", "config", "--images"];
}

/**
 * A hash for each service of the resolved model on standard input. Only this hash equals the `config-hash` label of
 * the containers: if compose reads the files itself, it leaves the content of env files out of the hash.
 */
export function hashCommand(): Argv {
  return ["docker", "compose", "--file", "-", "config", "--hash", "*"];
}

export function buildCommand(target: ComposeTarget, services: readonly string[]): Argv {
  return [...compose(target), "build", ...services];
}

export function pullCommand(target: ComposeTarget, services: readonly string[]): Argv {
  return [...compose(target), "pull", "--ignore-buildable", ...services];
}

/** A service, and how many containers it shall have. */
export interface Scale {
  readonly service: string;
  readonly count: number;
}

/** Starts more containers of services and leaves the present ones as they are (see refuse-changed-networks.ts). */
export function scaleUpCommand(target: ComposeTarget, scales: readonly Scale[]): Argv {
  const options = scales.flatMap(({ service, count }) => ["--scale", `${service}=${count}`]);
  const services = scales.map(({ service }) => service);
  const up = ["up", "--detach", "--no-deps", "--no-build", "--no-recreate"];
  return [...compose(target), ...up, ...options, ...services];
}

/** The same command as a dry run: compose only prints, line by line, what it would do. */
export function rehearsed([docker, plugin = "", ...rest]: Argv): Argv {
  return [docker, plugin, "--dry-run", ...rest];
}

/** Replaces the containers of one service. The service is down in between. */
export function recreateCommand(target: ComposeTarget, service: string): Argv {
  return [...compose(target), "up", "--detach", "--no-deps", "--no-build", service];
}

/** Runs a service to its end in a new container, which replaces the one that ended. */
export function runOnceCommand(target: ComposeTarget, service: string): Argv {
  const [program, ...up] = recreateCommand(target, service);
  return [program, ...up.toSpliced(-1, 0, "--force-recreate")];
}

function compose(target: ComposeTarget): Argv {
  const name = target.projectName === undefined ? [] : ["--project-name", target.projectName];
  const files = target.files.flatMap((file) => ["--file", file]);
  const directory = ["--project-directory", target.projectDirectory];
  return ["docker", "compose", "--progress", "plain", ...directory, ...name, ...files];
}

type Environment = Readonly<Record<string, string | undefined>>;

/** In the order in which compose looks for them: `DefaultFileNames` in compose-go, cli/options.go. */
export const composeFileNames = ["compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml"];

/** The first of them is used beside that file: `DefaultOverrideFileNames` there. */
export const composeOverrideNames = [
  "compose.override.yml",
  "compose.override.yaml",
  "docker-compose.override.yml",
  "docker-compose.override.yaml",
];

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
