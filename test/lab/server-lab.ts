import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import {
  projectNetwork,
  type ServerFiles,
  type ServerState,
  serverFilesAt,
  serverNetwork,
  serverStateAt,
  serviceAlias,
} from "../../src/config/server.ts";
import { serverCaddyfile, serverComposeFile } from "../../src/setup/server-files.ts";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { until } from "../harness/until.ts";
import {
  buildImage,
  type Docker,
  dockerIn,
  endOf,
  removeFromEngine,
  removeImage,
  spawnHotpush,
} from "./project.ts";

const run = promisify(execFile);
const appPath = join(import.meta.dirname, "app");
const hotpushImage = "hotpush-e2e:server";

/** The server on a real engine, from its real files and image. An engine has only one. */
export type ServerLab = Awaited<ReturnType<typeof startServer>>;

/**
 * Builds the images and starts the server without projects.
 *
 * @param image of Hotpush, if that is built already
 */
export async function startServer(labEnv: NodeJS.ProcessEnv, image?: string) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-server-"));
  const files = serverFilesAt(join(directory, "etc"));
  const state = serverStateAt(join(directory, "state"));
  const port = await freePort();
  const docker = dockerIn(directory, labEnv);
  const compose = (...args: readonly string[]) => dockerIn(files.path, labEnv)("compose", ...args);
  const names: string[] = [];
  const started = new Set<string>();
  if (image === undefined) await buildImage(labEnv, hotpushImage);
  await docker("build", "--quiet", "--tag", appImage, await appSources(directory));
  writeServer(files, state, { directory, port, socket: socketOf(labEnv), image: image ?? hotpushImage });
  await compose("up", "--detach", "--wait");
  const caddyNetworks = async () => {
    const format = '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{"\\n"}}{{end}}';
    return (await docker("inspect", "hotpush-caddy-1", "--format", format)).split("\n").sort();
  };
  return {
    files,
    state,
    docker,
    /** In the directory of the server. */
    compose,
    /** Writes the files of a project, as `hotpush init` does, without starting anything of it. */
    addProject(name: string) {
      // Each has an address of the loopback network, because names would have to be resolved.
      const host = `127.0.0.${names.push(name) + 1}`;
      const onStart = () => started.add(name);
      return writeProject(name, { directory, files, state, host, port, env: labEnv, onStart });
    },
    /** Waits until Caddy is on the networks of just these projects. */
    async untilJoined(names: readonly string[], withinMs?: number) {
      const wanted = [serverNetwork, ...["front", ...names].map(projectNetwork)].sort().join();
      const isJoined = async () => (await caddyNetworks().catch(() => [])).join() === wanted;
      await until(`Caddy on the networks ${wanted}`, isJoined, withinMs);
    },
    async status() {
      const printed = await compose("exec", "--no-tty", "run", "hotpush", "status", "--json").catch(
        (error: { readonly stdout: string }) => error.stdout,
      );
      return JSON.parse(printed) as WholeStatusJson;
    },
    async remove() {
      for (const name of started) await removeFromEngine(docker, name);
      await compose("down", "--timeout", "1");
      await removeNetworks(docker);
      if (image === undefined) await removeImage(labEnv, hotpushImage);
      // With the names that roll-outs have given it.
      await docker("image", "rm", "--force", await docker("images", "--quiet", appImage));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function socketOf({ DOCKER_HOST = "unix:///var/run/docker.sock" }: NodeJS.ProcessEnv): string {
  return DOCKER_HOST.replace("unix://", "");
}

/** The lab's app, which answers with its version. */
async function appSources(directory: string): Promise<string> {
  const path = join(directory, "app");
  await run("cp", ["--recursive", appPath, path]);
  writeFileSync(join(path, "behaviour.json"), JSON.stringify({ version: "first", behaviour: "graceful" }));
  return path;
}

interface Place {
  readonly directory: string;
  readonly port: number;
  readonly socket: string;
  readonly image: string;
}

function writeServer(
  files: ServerFiles,
  state: ServerState,
  { directory, port, socket, image }: Place,
): void {
  const paths = [files.sitesPath, files.projectsPath, files.secretsPath];
  for (const path of [...paths, ...Object.values(state)]) mkdirSync(path, { recursive: true });
  chownSync(state.front, frontUid, frontUid);
  writeFileSync(join(state.live, "closing"), "no");
  const settings = {
    HOTPUSH_IMAGE: image,
    SERVER_PATH: files.path,
    STATE_PATH: state.path,
    FRONT_USER: `${frontUid}:${frontUid}`,
    DOCKER_SOCKET: socket,
    HTTP_PORT: String(port),
    HTTPS_PORT: "0",
  };
  writeFileSync(files.envFile, linesOf(settings));
  writeFileSync(files.composeFile, serverComposeFile([directory]));
  writeFileSync(files.caddyfile, serverCaddyfile());
}

async function removeNetworks(docker: Docker): Promise<void> {
  const ids = await docker("network", "ls", "--quiet", "--filter", "label=hotpush.project");
  if (ids !== "") await docker("network", "rm", ...ids.split("\n"));
}

const appImage = "hotpush-e2e:server-app";
/** The user of `front`. */
const frontUid = 9000;

/** A project with one service, behind Caddy at an address of its own. */
export type LabProject = ReturnType<typeof writeProject>;

/** Where a project goes, and the server that serves it. */
interface ProjectPlace {
  readonly directory: string;
  readonly files: ServerFiles;
  readonly state: ServerState;
  readonly host: string;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
  /** Called before the engine has anything of the project. */
  readonly onStart: () => void;
}

/** Writes the files of a project, as `hotpush init` does. */
function writeProject(name: string, place: ProjectPlace) {
  const { directory, files, state, host, port, env, onStart } = place;
  const checkout = join(directory, name);
  const writeCompose = (source: object) =>
    writeFileSync(join(checkout, "compose.yaml"), JSON.stringify(composeFile(name, source)));
  const own = { SERVER_PATH: files.path, STATE_PATH: "", HOTPUSH_MIN_FREE: "1 MiB" };
  const start = (...args: readonly string[]) => spawnHotpush(checkout, { ...env, ...own }, args);
  const rollOut = (...args: readonly string[]) => endOf(start("rollout", ...args));
  const siteFile = join(files.sitesPath, `${name}.caddy`);
  const file = join(files.projectsPath, `${name}.env`);
  mkdirSync(checkout);
  writeCompose({ image: appImage });
  writeFileSync(
    siteFile,
    `http://${host} {\n\timport deliveries ${name}\n\timport service ${name} web 8080\n}\n`,
  );
  const settings = { REPO_PATH: checkout, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0" };
  const webhook = { WEBHOOK_URL: `http://${host}:${port}/webhook` };
  writeFileSync(file, linesOf({ ...settings, ...webhook }));
  chownSync(file, 0, frontUid);
  return {
    name,
    checkout,
    siteFile,
    /** Starts a command of Hotpush in its directory. */
    start,
    origin: `http://${host}:${port}`,
    liveFile: join(state.live, name, "web"),
    /** In the directory of the project. */
    compose(...args: readonly string[]) {
      onStart();
      return dockerIn(checkout, env)("compose", ...args);
    },
    /** Runs `hotpush rollout` in its directory, with an image of its own for each version. */
    deploy: (version: string) => {
      writeCompose({ build: { dockerfile_inline: `FROM ${appImage}\nLABEL version=${version}\n` } });
      return rollOut("--commit", Buffer.from(version).toString("hex").padEnd(40, "0"));
    },
    rollBack: () => rollOut("--back"),
    /** Removes its files of the server; its containers keep running. */
    forget() {
      for (const path of [file, siteFile]) rmSync(path, { force: true });
    },
  };
}

/** @param source where the image comes from */
function composeFile(name: string, source: object): object {
  const networks = { default: {}, hotpush: { aliases: [serviceAlias("web", name)] } };
  const healthcheck = {
    test: ["CMD", "./healthcheck.sh"],
    interval: "5s",
    start_period: "30s",
    start_interval: "500ms",
  };
  const web = { ...source, restart: "unless-stopped", healthcheck, networks };
  return { name, services: { web }, networks: { hotpush: { name: projectNetwork(name), external: true } } };
}

/** The text of a file of settings. */
function linesOf(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** The text of a live file. */
export function readLiveFile({ liveFile }: LabProject): string {
  return readFileSync(liveFile, "utf8");
}

/** Waits until the app of a project answers through Caddy. */
export async function untilServed({ origin }: LabProject): Promise<void> {
  await until(`an answer at ${origin}`, async () => {
    const answer = await fetch(origin, { headers: { connection: "close" } }).catch(() => null);
    return answer?.status === 200 && (await answer.text()).startsWith("first ");
  });
}
