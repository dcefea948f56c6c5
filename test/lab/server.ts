import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { projectNetwork, serverFilesAt, serverStateAt, serviceAlias } from "../../src/config/server.ts";
import { serverCaddyfile, serverComposeFile } from "../../src/setup/server-files.ts";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { writeScript } from "../harness/temporary.ts";
import { type Ending, endOf } from "./project.ts";
import { spawnHotpush } from "./spawn-hotpush.ts";

const run = promisify(execFile);
const frontId = 9_000;

/** A server on a real engine, from the files that `init` writes, with one project. */
export interface LabServer {
  readonly path: string;
  /** STATE_PATH of `run`. */
  readonly runStatePath: string;
  readonly frontStatePath: string;
  /** Where the app of the project answers, and its webhook. */
  readonly origin: string;
  readonly checkout: string;
  readonly env: NodeJS.ProcessEnv;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** Runs a command of this checkout's Hotpush in the project's checkout. */
  readonly hotpush: (...args: readonly string[]) => Promise<Ending>;
  /** Its containers, each as `<name> <image> <id>`. */
  readonly containers: () => Promise<readonly string[]>;
  readonly remove: () => Promise<void>;
}

/** Starts it with the image `image` of Hotpush. @param script the text of the project's deploy.sh */
export async function makeLabServer(
  labEnv: NodeJS.ProcessEnv,
  image: string,
  script: string,
): Promise<LabServer> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-e2e-"));
  const files = serverFilesAt(join(directory, "etc"));
  const state = serverStateAt(join(directory, "lib"));
  const checkout = join(directory, "srv", "shop");
  const port = await freePort();
  const env = { ...labEnv, SERVER_PATH: files.path };
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { env: labEnv, cwd: files.path })).stdout.trim();
  const remove = async () => {
    await docker("compose", "down", "--timeout", "2").catch(() => {});
    await docker("rm", "--force", appName).catch(() => {});
    await docker("network", "rm", projectNetwork("shop")).catch(() => {});
    await rm(directory, { recursive: true, force: true });
  };
  await makeCheckout(checkout, script);
  makeDirectories();
  writeFiles();
  try {
    await startApp(docker, directory);
    await docker("compose", "up", "--detach", "--wait");
    await docker("network", "connect", projectNetwork("shop"), "hotpush-caddy-1").catch(() => {});
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    ...{ path: files.path, runStatePath: state.run, frontStatePath: state.front, checkout, env, docker },
    ...{ remove, origin: `http://127.0.0.1:${port}` },
    hotpush: (...args) => endOf(spawnHotpush(checkout, env, args)),
    async containers() {
      const filter = "label=com.docker.compose.project=hotpush";
      const format = "{{.Names}} {{.Image}} {{.ID}}";
      return (await docker("ps", "--filter", filter, "--format", format)).split("\n").sort();
    },
  };

  function makeDirectories(): void {
    for (const path of [files.sitesPath, files.projectsPath, files.secretsPath])
      mkdirSync(path, { recursive: true });
    for (const path of Object.values(state)) mkdirSync(path, { recursive: true });
    mkdirSync(join(state.live, "shop"));
    for (const path of [state.front]) chownSync(path, frontId, frontId);
  }

  function writeFiles(): void {
    const variables = {
      ...{ HOTPUSH_IMAGE: image, SERVER_PATH: files.path, STATE_PATH: state.path },
      ...{ FRONT_USER: `${frontId}:${frontId}`, HTTP_PORT: String(port), HTTPS_PORT: "0" },
      DOCKER_SOCKET: (labEnv.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""),
    };
    writeFileSync(files.envFile, linesOf(variables));
    writeFileSync(files.composeFile, serverComposeFile([join(directory, "srv")]));
    writeFileSync(files.caddyfile, serverCaddyfile());
    const site = "http://127.0.0.1 {\n\timport deliveries shop\n\timport service shop web 8080\n}\n";
    writeFileSync(join(files.sitesPath, "shop.caddy"), site);
    writeFileSync(join(state.live, "shop", "web"), serviceAlias("web", "shop"));
    const project = { REPO_PATH: checkout, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0" };
    const file = join(files.projectsPath, "shop.env");
    writeFileSync(file, linesOf({ ...project, WEBHOOK_URL: `http://127.0.0.1:${port}/webhook` }), {
      mode: 0o640,
    });
    chownSync(file, 0, frontId);
  }
}

/** A clone of a repository that `run` reaches too, because both are in one directory. */
async function makeCheckout(path: string, script: string): Promise<void> {
  const [remote, who] = [`${path}.git`, ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]];
  const git = (...args: readonly string[]) => run("git", [...who, ...args]);
  await git("init", "--quiet", "--bare", "--initial-branch=main", remote);
  await git("clone", "--quiet", remote, path);
  writeScript(join(path, "deploy.sh"), script);
  await git("-C", path, "add", "--all");
  await git("-C", path, "commit", "--quiet", "--message", "The first version");
  await git("-C", path, "push", "--quiet", "origin", "HEAD:main");
}

const appName = "hotpush-e2e-web";

/** The app of the project, which a roll-out would start. */
async function startApp(docker: LabServer["docker"], directory: string): Promise<void> {
  const context = join(directory, "app");
  await cp(join(import.meta.dirname, "app"), context, { recursive: true });
  writeFileSync(join(context, "behaviour.json"), JSON.stringify({ version: "v1", behaviour: "graceful" }));
  await docker("build", "--quiet", "--tag", appName, context);
  await docker("network", "create", projectNetwork("shop")).catch(() => {});
  const alias = ["--network-alias", serviceAlias("web", "shop")];
  await docker("run", "--detach", "--name", appName, "--network", projectNetwork("shop"), ...alias, appName);
}

function linesOf(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}
