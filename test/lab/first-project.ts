import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { projectNetwork, serverComposeProject, serverFilesAt } from "../../src/config/server.ts";
import { dockerIn, endOf, removeFromEngine, spawnHotpush } from "./project.ts";
import { makeRepository, newServerEnv, webService } from "./server.ts";

const run = promisify(execFile);
const name = "shop";

/** A machine without Hotpush, and a checkout of a project that runs there and publishes a port. */
export type FirstProject = Awaited<ReturnType<typeof makeFirstProject>>;

/**
 * @param serverPath SERVER_PATH; by default in a directory of its own
 * @param appPort the port that the project publishes; by default that of Caddy, which takes it over
 */
export async function makeFirstProject(labEnv: NodeJS.ProcessEnv, serverPath?: string, appPort?: number) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  const files = serverFilesAt(serverPath ?? join(directory, "etc"));
  const checkout = join(directory, name);
  const env = await newServerEnv(labEnv, files.path);
  const services = { app: webService(String(appPort ?? env.HTTP_PORT)) };
  await makeRepository(join(directory, "git"), checkout, { name, services });
  const docker = dockerIn(checkout, env);
  const type = async (command: string) =>
    (await run("bash", ["-c", command], { cwd: checkout, env, timeout: 120_000 })).stdout;

  async function clear(): Promise<void> {
    await removeFromEngine(docker, serverComposeProject);
    await docker("network", "disconnect", "--force", projectNetwork(name), `${name}-app-1`).catch(() => {});
    await docker("network", "rm", projectNetwork(name)).catch(() => {});
    // A file system may be mounted there.
    await type(`rm -rf ${files.path}/* ${files.path}/.env; git clean --quiet -fdx; rm -f .git/info/exclude`);
  }

  const appUrl = `http://127.0.0.1:${env.HTTP_PORT}/`;
  const start = (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
    endOf(spawnHotpush(checkout, { ...env, ...more }, args));
  return {
    checkout,
    files,
    docker,
    type,
    httpPort: Number(env.HTTP_PORT),
    appUrl,
    /** Runs `hotpush` with these arguments. */
    hotpush: (...args: readonly string[]) => start(args),
    /** As `hotpush init --yes --url`, with other variables. */
    init: (more?: NodeJS.ProcessEnv) => start(["init", "--yes", "--url", appUrl], more),
    /** Removes all that `init` makes, and starts the project as it was. */
    async reset() {
      await clear();
      await docker("compose", "up", "--detach", "--wait");
    },
    async remove() {
      await removeFromEngine(docker, name);
      await clear();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * The commands in what a command has printed, such as `hotpush logs -f 3` in `See: hotpush logs -f 3. Then …`: from the word
 * before which a colon, a bracket or the beginning of an indented line is, to the end of the sentence or of the line.
 */
export function advicesIn(output: string): readonly string[] {
  const pattern =
    /(?:: |\(|; |^ {2,})((?:cd \S+ && )?(?:sudo )?(?:hotpush|docker) [^\n;()<>…]*?)(?=[;)]|\.(?:\s|$)|, | = |$)/gm;
  return [...output.matchAll(pattern)].map(([, command = ""]) => command.trim());
}
