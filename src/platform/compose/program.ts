import { readFileSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import { kindOf, readStart } from "../files.ts";
import { findProgram, isRunnable } from "../find-program.ts";
import type { Argv } from "../run-command.ts";

/** The first in which `!reset` removes a list that another file gives; `start_interval` came with 2.24.0. */
export const neededCompose = "2.24.4";

/** Where docker looks for its plugins after the directories of its configuration, in its order. */
const systemDirectories = [
  "/usr/local/lib/docker/cli-plugins",
  "/usr/local/libexec/docker/cli-plugins",
  "/usr/lib/docker/cli-plugins",
  "/usr/libexec/docker/cli-plugins",
];
const viaDocker: Argv = ["docker", "compose"];
const elf = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);

/**
 * Gives the beginning of a command of compose: its own program, which docker would start after it has asked it for its
 * name. That costs a tenth of a second of a core, more than most answers of compose, and a roll-out asks four times.
 *
 * Where docker might do anything else, it is `docker compose`: a `docker` or a plugin that is a script, a `docker` that is
 * another program's link, a configuration that cannot be read, a plugin in no usual place, a plugin that runs this. (A docker
 * that was built to look in further places first is not recognized.) Compose runs by itself just as well, see
 * https://docs.docker.com/compose/install/standalone/; for docker's search see `getPluginDirs` in docker/cli,
 * cli-plugins/manager/manager.go.
 */
export function composeProgram(env: NodeJS.ProcessEnv): Argv {
  if (env.DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND) return viaDocker;
  const directory = env.DOCKER_CONFIG || join(env.HOME || homedir(), ".docker");
  if (!isAbsolute(directory) || !isDockerItself(findProgram("docker", env.PATH ?? ""))) return viaDocker;
  const extra = extraDirectories(directory);
  if (extra === null) return viaDocker;
  const places = [...extra, join(directory, "cli-plugins"), ...systemDirectories];
  const plugin = places.map((place) => join(place, "docker-compose")).find(isThere);
  return plugin !== undefined && isCompiled(plugin) ? [plugin] : viaDocker;
}

/** Whether `docker` is a program of this name, not a script or a link to something else. */
function isDockerItself(docker: string | null): boolean {
  if (docker === null || !isAbsolute(docker)) return false;
  const real = realpathSync(docker);
  return basename(real) === "docker" && isCompiled(real);
}

/** A script could do anything with its arguments. */
function isCompiled(path: string): boolean {
  try {
    return isRunnable(path) && readStart(path, elf.length).equals(elf);
  } catch {
    return false;
  }
}

/** `cliPluginsExtraDirs` of docker's configuration; null where it cannot be read. Without one there are none. */
function extraDirectories(directory: string): readonly string[] | null {
  try {
    const config: { readonly cliPluginsExtraDirs?: unknown } = JSON.parse(
      readFileSync(join(directory, "config.json"), "utf8"),
    );
    const { cliPluginsExtraDirs: extra = [] } = config;
    return Array.isArray(extra) && extra.every(isAbsolutePath) ? extra : null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : null;
  }
}

function isAbsolutePath(value: unknown): boolean {
  return typeof value === "string" && isAbsolute(value);
}

function isThere(path: string): boolean {
  return kindOf(path) !== "missing";
}
