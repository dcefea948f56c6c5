import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  type MachineFiles,
  type MachineState,
  machineFilesAt,
  machineNetwork,
  machineStateAt,
  projectNetwork,
  receiveNetwork,
  serviceAlias,
} from "../../src/config/machine-part.ts";
import type { WholeStatusJson } from "../../src/control/status.ts";
import { machineCaddyfile } from "../../src/machine-part/caddyfile.ts";
import { machineComposeFile } from "../../src/machine-part/compose-file.ts";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { until } from "../harness/until.ts";
import { buildImage, removeImage } from "./image.ts";

const run = promisify(execFile);
const appPath = join(import.meta.dirname, "app");
const [hotpushImage, appImage] = ["hotpush-e2e:machine-part", "hotpush-e2e:machine-part-app"];
/** The user of `receive`. */
const receiveUid = 9000;

/** The machine part on a real engine, from its real files and image. An engine has only one. */
export interface MachinePartLab {
  readonly files: MachineFiles;
  readonly state: MachineState;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** In the directory of the machine part. */
  readonly compose: (...args: readonly string[]) => Promise<string>;
  /** Writes the files of a project, as `hotpush init` does, without starting anything of it. */
  readonly addProject: (name: string) => LabProject;
  /** The networks of Caddy's container, sorted. */
  readonly caddyNetworks: () => Promise<readonly string[]>;
  /** Waits until Caddy is on the networks of just these projects. @returns how long that took */
  readonly untilJoined: (projects: readonly string[], withinMs?: number) => Promise<number>;
  readonly status: () => Promise<WholeStatusJson>;
  readonly remove: () => Promise<void>;
}

/** A project with one service, behind Caddy at an address of its own. */
export interface LabProject {
  readonly name: string;
  readonly origin: string;
  readonly liveFile: string;
  readonly siteFile: string;
  /** In the directory of the project. */
  readonly compose: (...args: readonly string[]) => Promise<string>;
  /** Removes its files of the machine part; its containers keep running. */
  readonly forget: () => void;
}

/** Builds the images and starts the machine part without projects. */
export async function startMachinePart(labEnv: NodeJS.ProcessEnv): Promise<MachinePartLab> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-part-"));
  const files = machineFilesAt(join(directory, "etc"));
  const state = machineStateAt(join(directory, "state"));
  const port = await freePort();
  const docker = dockerIn(directory, labEnv);
  const compose: MachinePartLab["compose"] = (...args) => dockerIn(files.path, labEnv)("compose", ...args);
  const projects: LabProject[] = [];
  await buildImage(labEnv, hotpushImage);
  await docker("build", "--quiet", "--tag", appImage, await appSources(directory));
  writeMachinePart(files, state, { directory, port, socket: socketOf(labEnv) });
  await compose("up", "--detach", "--wait");
  const caddyNetworks = async () => {
    const format = '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{"\\n"}}{{end}}';
    return (await docker("inspect", "hotpush-caddy-1", "--format", format)).split("\n").sort();
  };
  return {
    ...{ files, state, docker, compose, caddyNetworks },
    addProject(name) {
      // Each has an address of the loopback network, because names would have to be resolved.
      const host = `127.0.0.${projects.length + 2}`;
      const project = writeProject(name, { directory, files, state, host, port, env: labEnv });
      projects.push(project);
      return project;
    },
    async untilJoined(names, withinMs) {
      const wanted = [machineNetwork, receiveNetwork, ...names.map(projectNetwork)].sort().join();
      const startMs = performance.now();
      const isJoined = async () => (await caddyNetworks().catch(() => [])).join() === wanted;
      await until(`Caddy on the networks ${wanted}`, isJoined, withinMs);
      return performance.now() - startMs;
    },
    async status() {
      const printed = await compose("exec", "--no-tty", "run", "hotpush", "status", "--json").catch(
        (error: { readonly stdout: string }) => error.stdout,
      );
      return JSON.parse(printed) as WholeStatusJson;
    },
    async remove() {
      const format = '{{.Label "com.docker.compose.project"}}';
      const present = (await docker("ps", "--all", "--format", format)).split("\n");
      for (const project of projects.filter(({ name }) => present.includes(name)))
        await project.compose("down", "--timeout", "1").catch(() => {});
      await compose("down", "--timeout", "1");
      await removeNetworks(docker);
      for (const image of [hotpushImage, appImage]) await removeImage(labEnv, image);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function dockerIn(cwd: string, env: NodeJS.ProcessEnv) {
  return async (...args: readonly string[]) =>
    (await run("docker", args, { env, cwd, maxBuffer: 16 * 1024 ** 2 })).stdout.trim();
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
}

function writeMachinePart(
  files: MachineFiles,
  state: MachineState,
  { directory, port, socket }: Place,
): void {
  const paths = [files.sitesPath, files.projectsPath, files.secretsPath];
  for (const path of [...paths, ...Object.values(state)]) mkdirSync(path, { recursive: true });
  chownSync(state.receive, receiveUid, receiveUid);
  writeFileSync(join(state.live, "closing"), "no");
  const settings = {
    HOTPUSH_IMAGE: hotpushImage,
    MACHINE_PATH: files.path,
    STATE_PATH: state.path,
    RECEIVE_USER: `${receiveUid}:${receiveUid}`,
    DOCKER_SOCKET: socket,
    HTTP_PORT: String(port),
    HTTPS_PORT: "0",
  };
  writeFileSync(files.envFile, linesOf(settings));
  writeFileSync(files.composeFile, machineComposeFile([directory]));
  writeFileSync(files.caddyfile, machineCaddyfile());
}

function linesOf(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

interface ProjectPlace {
  readonly directory: string;
  readonly files: MachineFiles;
  readonly state: MachineState;
  readonly host: string;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
}

function writeProject(name: string, place: ProjectPlace): LabProject {
  const { directory, files, state, host, port, env } = place;
  const checkout = join(directory, name);
  const [siteFile, file] = [join(files.sitesPath, `${name}.caddy`), join(files.projectsPath, `${name}.env`)];
  mkdirSync(checkout);
  writeFileSync(join(checkout, "compose.yaml"), JSON.stringify(composeFile(name)));
  writeFileSync(
    siteFile,
    `http://${host} {\n\timport deliveries ${name}\n\timport service ${name} web 8080\n}\n`,
  );
  const settings = { REPO_PATH: checkout, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0" };
  writeFileSync(file, linesOf(settings));
  chownSync(file, 0, receiveUid);
  return {
    ...{ name, siteFile },
    origin: `http://${host}:${port}`,
    liveFile: join(state.live, name, "web"),
    compose: (...args) => dockerIn(checkout, env)("compose", ...args),
    forget() {
      for (const path of [file, siteFile]) rmSync(path);
    },
  };
}

function composeFile(name: string): object {
  const networks = { default: {}, hotpush: { aliases: [serviceAlias("web", name)] } };
  const web = { image: appImage, init: true, restart: "unless-stopped", networks };
  return { name, services: { web }, networks: { hotpush: { name: projectNetwork(name), external: true } } };
}

async function removeNetworks(docker: MachinePartLab["docker"]): Promise<void> {
  const ids = await docker("network", "ls", "--quiet", "--filter", "label=hotpush.project");
  if (ids !== "") await docker("network", "rm", ...ids.split("\n"));
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
