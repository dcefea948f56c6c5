import type { Argv } from "../run-command.ts";

/** Which compose project a command is about. Without files, compose looks for its own in the project's directory. */
export interface ComposeTarget {
  readonly projectDirectory: string;
  /** In a container: where that directory is in there, which may be another path. */
  readonly directoryHere?: string;
  readonly files: readonly string[];
  /** Where it is not what compose makes of the files and the directory. */
  readonly projectName?: string;
}

/** The version of compose alone, such as `2.24.0`. */
export function versionCommand(): Argv {
  return ["docker", "compose", "version", "--short"];
}

/** The whole model, with variables and env files resolved, as JSON. */
export function configCommand(target: ComposeTarget): Argv {
  return [...compose(target), "config", "--format", "json"];
}

/** The names of all images in the compose files, one a line: also those of services in profiles that are not active. */
export function imagesCommand(target: ComposeTarget): Argv {
  return [...compose(target), "--profile", "*", "config", "--images"];
}

/**
 * A hash for each service, of the resolved model on standard input. Only so does it equal the `config-hash` label of
 * the containers: asked about the files, compose leaves the content of env files out of it.
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

/** More containers of one service, beside those there are, which stay as they are (refuse-changed-networks.ts). */
export function scaleUpCommand(target: ComposeTarget, service: string, count: number): Argv {
  const scale = ["--no-recreate", "--scale", `${service}=${count}`];
  return [...compose(target), "up", "--detach", "--no-deps", "--no-build", ...scale, service];
}

/** The command of compose that only says, line by line, what another one would do. */
export function rehearsed([docker, plugin = "", ...rest]: Argv): Argv {
  return [docker, plugin, "--dry-run", ...rest];
}

/** The containers of one service in place of those there are: it is away in between. */
export function recreateCommand(target: ComposeTarget, service: string): Argv {
  return [...compose(target), "up", "--detach", "--no-deps", "--no-build", service];
}

/** A service that runs to its end, in a new container in place of the one that ended. */
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
