import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { parseEnv, promisify } from "node:util";
import { serverFilesAt } from "../../src/config/server.ts";
import { withCheckoutPath } from "../../src/setup/server-files.ts";
import { githubPush } from "../harness/delivery.ts";
import { launcher } from "../harness/hotpush.ts";
import { git } from "./newcomer.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const names = pathToFileURL(join(import.meta.dirname, "test-names.js")).href;

/** A server on which `hotpush init` makes the server in a temporary directory. */
export type NewServer = Awaited<ReturnType<typeof makeNewServer>>;

export async function makeNewServer(labEnv: NodeJS.ProcessEnv) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  const path = join(directory, "etc");
  const env = {
    ...labEnv,
    SERVER_PATH: path,
    PATH: `${dirname(launcher)}:${labEnv.PATH}`,
    NODE_OPTIONS: `--import=${names}`,
  };
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { env, cwd: directory })).stdout.trim();
  const checkouts: TestCheckout[] = [];
  return {
    /** SERVER_PATH */
    path,
    docker,
    /** Makes a bare remote and a checkout of it, whose host name is `<name>.test`. */
    async addCheckout(name: string, files: Readonly<Record<string, string>>) {
      const checkout = await makeCheckout(join(directory, name), name, files, { env, path });
      checkouts.push(checkout);
      return checkout;
    },
    /** Gives `run` the directory of all checkouts, as a person may do by hand, so that no further one is added alone. */
    async addCheckoutPath() {
      const file = serverFilesAt(path).composeFile;
      await writeFile(file, withCheckoutPath(await readFile(file, "utf8"), directory, false));
      await run("docker", ["compose", "up", "--detach", "--wait"], { env, cwd: path });
    },
    async remove() {
      for (const checkout of checkouts)
        await checkout.type("docker compose down --volumes --rmi local --timeout 1").catch(() => {});
      await docker("compose", "--project-name", "hotpush", "down", "--timeout", "1").catch(() => {});
      for (const { name } of checkouts) {
        await docker("network", "rm", `hotpush-${name}`).catch(() => {});
        await removeImages(docker, name);
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function removeImages(docker: NewServer["docker"], project: string): Promise<void> {
  const images = await docker("images", "--quiet", "--filter", `label=com.docker.compose.project=${project}`);
  if (images !== "") await docker("rmi", "--force", ...new Set(images.split("\n")));
}

export type TestCheckout = Awaited<ReturnType<typeof makeCheckout>>;

async function makeCheckout(
  place: string,
  name: string,
  files: Readonly<Record<string, string>>,
  { env, path }: { readonly env: NodeJS.ProcessEnv; readonly path: string },
) {
  const developer = join(place, "developer");
  const directory = join(place, name);
  await cp(join(root, "examples/compose/app"), join(developer, "app"), { recursive: true });
  for (const [file, content] of Object.entries(files)) {
    await mkdir(dirname(join(developer, file)), { recursive: true });
    await writeFile(join(developer, file), content);
  }
  await git(place, "init", "--quiet", "--bare", "--initial-branch=main", `${name}.git`);
  await git(developer, "init", "--quiet", "--initial-branch=main");
  await git(developer, "remote", "add", "origin", `../${name}.git`);
  await commitAndPush(developer, "Version 1");
  await git(place, "clone", "--quiet", `${name}.git`, name);
  return {
    name,
    directory,
    type: async (command: string) => (await run("bash", ["-c", command], { cwd: directory, env })).stdout,
    /** The page at its host name, through Caddy. */
    page: async () => (await ask(`${name}.test`, "GET", "/")).body,
    async push(version: number) {
      const server = join(developer, "app/server.js");
      await writeFile(server, (await readFile(server, "utf8")).replace(/version \d+/, `version ${version}`));
      const before = await git(developer, "rev-parse", "HEAD");
      const after = await commitAndPush(developer, `Version ${version}`);
      const { WEBHOOK_SECRET } = parseEnv(await readFile(join(path, `projects/${name}.env`), "utf8"));
      const { headers, body } = githubPush({ before, after }, WEBHOOK_SECRET);
      return (await ask(`${name}.test`, "POST", "/webhook", headers, String(body))).status;
    },
  };
}

async function commitAndPush(developer: string, message: string): Promise<string> {
  await git(developer, "add", "--all");
  await git(developer, "commit", "--quiet", "--message", message);
  await git(developer, "push", "--quiet", "origin", "main");
  return await git(developer, "rev-parse", "HEAD");
}

/** A request to Caddy of the machine with this host name. */
function ask(
  host: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body = "",
): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", method, path, headers: { ...headers, host }, agent: false };
    request(options, async (response) => {
      resolve({ status: response.statusCode ?? 0, body: await text(response) });
    })
      .once("error", reject)
      .end(body);
  });
}
