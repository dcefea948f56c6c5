import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import { findProgram, isRunnable, kindOf } from "../files.ts";
import { readForeignFile } from "../foreign-files.ts";
import type { Argv } from "../run-command.ts";

/** The first version in which `!reset` removes a list that another file gives. `start_interval` came with 2.24.0. */
export const neededCompose = "2.24.4";

/** Docker looks for plugins here, in this order, after the directories of its configuration. */
const systemDirectories = [
  "/usr/local/lib/docker/cli-plugins",
  "/usr/local/libexec/docker/cli-plugins",
  "/usr/lib/docker/cli-plugins",
  "/usr/libexec/docker/cli-plugins",
];
const viaDocker: Argv = ["docker", "compose"];
const elf = Buffer.from([0x7f, 0x45, 0x4c, 0x46]);

/**
 * Gives the first words of a compose command: the plugin's own program if that is safe, else `docker compose`. Docker
 * asks the plugin for its name before it starts it. That costs a tenth of a second of a core, more than most answers
 * of compose, and a roll-out asks four times.
 *
 * It is `docker compose` if docker might do anything else: if `docker` or the plugin is a script, if `docker` is a
 * link to another program, if the configuration cannot be read, if the plugin is in no usual place, or if a plugin
 * runs this. (A docker that was built to search further directories first is not recognized.) Compose also runs
 * alone, see https://docs.docker.com/compose/install/standalone/; for docker's search see `getPluginDirs` in
 * docker/cli, cli-plugins/manager/manager.go.
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

/** Whether `docker` is a compiled program of this name, not a script or a link to something else. */
function isDockerItself(docker: string | null): boolean {
  if (docker === null || !isAbsolute(docker)) return false;
  const real = realpathSync(docker);
  return basename(real) === "docker" && isCompiled(real);
}

/** A script could do anything with its arguments. */
function isCompiled(path: string): boolean {
  try {
    return isRunnable(path) && readForeignFile(path, { mostBytes: elf.length, isCut: true }).equals(elf);
  } catch {
    return false;
  }
}

/** `cliPluginsExtraDirs` of docker's configuration; empty without a configuration, null if it cannot be read. */
function extraDirectories(directory: string): readonly string[] | null {
  try {
    const config: { readonly cliPluginsExtraDirs?: unknown } = JSON.parse(
      readForeignFile(join(directory, "config.json"), { mostBytes: 1024 ** 2 }).toString(),
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
