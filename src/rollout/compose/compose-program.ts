import { constants } from "node:fs";
import { access, open, readFile, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { basename, delimiter, isAbsolute, join } from "node:path";

type Program = readonly [string, ...string[]];

/** Where docker looks for its plugins after the directories of its configuration, in its order. */
const systemDirectories = [
  "/usr/local/lib/docker/cli-plugins",
  "/usr/local/libexec/docker/cli-plugins",
  "/usr/lib/docker/cli-plugins",
  "/usr/libexec/docker/cli-plugins",
];
const viaDocker: Program = ["docker", "compose"];
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
export async function composeProgram(env: NodeJS.ProcessEnv): Promise<Program> {
  if (env.DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND) return viaDocker;
  const directory = env.DOCKER_CONFIG || join(env.HOME || homedir(), ".docker");
  if (!isAbsolute(directory) || !(await isDockerItself(env))) return viaDocker;
  const extra = await extraDirectories(directory);
  if (extra === null) return viaDocker;
  for (const place of [...extra, join(directory, "cli-plugins"), ...systemDirectories]) {
    const path = join(place, "docker-compose");
    if (await isThere(path)) return (await isProgram(path)) ? [path] : viaDocker;
  }
  return viaDocker;
}

/** Whether the first `docker` on the path is a program of this name, not a script or a link to something else. */
async function isDockerItself(env: NodeJS.ProcessEnv): Promise<boolean> {
  for (const directory of (env.PATH ?? "").split(delimiter)) {
    const path = join(directory, "docker");
    if (!(await isExecutable(path))) continue;
    const real = await realpath(path);
    return isAbsolute(directory) && basename(real) === "docker" && (await isProgram(real));
  }
  return false;
}

/** Whether it may be run and is compiled: a script could do anything with its arguments. */
async function isProgram(path: string): Promise<boolean> {
  return (await isExecutable(path)) && (await firstBytes(path, elf.length))?.equals(elf) === true;
}

/** Null where it cannot be read, as a directory. */
async function firstBytes(path: string, count: number): Promise<Buffer | null> {
  const file = await open(path).catch(() => null);
  try {
    return (await file?.read(Buffer.alloc(count), 0, count, 0))?.buffer ?? null;
  } catch {
    return null;
  } finally {
    await file?.close();
  }
}

/** `cliPluginsExtraDirs` of docker's configuration; null where it cannot be read. Without one there are none. */
async function extraDirectories(directory: string): Promise<readonly string[] | null> {
  try {
    const config: { readonly cliPluginsExtraDirs?: unknown } = JSON.parse(
      await readFile(join(directory, "config.json"), "utf8"),
    );
    const { cliPluginsExtraDirs: extra = [] } = config;
    return Array.isArray(extra) && extra.every((name) => isAbsolute(String(name))) ? extra : null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? [] : null;
  }
}

function isThere(path: string): Promise<boolean> {
  return may(path, constants.F_OK);
}

function isExecutable(path: string): Promise<boolean> {
  return may(path, constants.X_OK);
}

function may(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
