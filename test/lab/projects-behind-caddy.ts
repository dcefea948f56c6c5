import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import {
  frontNetwork,
  projectNetwork,
  type ServerFiles,
  type ServerState,
  serverFilesAt,
  serverNetwork,
  serverStateAt,
} from "../../src/config/server.ts";
import { serverCaddyfile, serverComposeFile } from "../../src/setup/server-files.ts";
import { freePort } from "../harness/listen.ts";
import { until } from "../harness/until.ts";
import { buildImage, removeImage } from "./image.ts";
import { dockerIn, removeFromEngine } from "./project.ts";
import { appImage, frontUid, type LabProject, linesOf, writeProject } from "./project-behind-caddy.ts";

const run = promisify(execFile);
const appPath = join(import.meta.dirname, "app");
const hotpushImage = "hotpush-e2e:server";

/** The server on a real engine, from its real files and image. An engine has only one. */
export interface ServerLab {
  readonly files: ServerFiles;
  readonly state: ServerState;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** In the directory of the server. */
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

/** Builds the images and starts the server without projects. */
export async function startServer(labEnv: NodeJS.ProcessEnv): Promise<ServerLab> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-server-"));
  const files = serverFilesAt(join(directory, "etc"));
  const state = serverStateAt(join(directory, "state"));
  const port = await freePort();
  const docker = dockerIn(directory, labEnv);
  const compose: ServerLab["compose"] = (...args) => dockerIn(files.path, labEnv)("compose", ...args);
  const names: string[] = [];
  const started = new Set<string>();
  await buildImage(labEnv, hotpushImage);
  await docker("build", "--quiet", "--tag", appImage, await appSources(directory));
  writeServer(files, state, { directory, port, socket: socketOf(labEnv) });
  await compose("up", "--detach", "--wait");
  const caddyNetworks = async () => {
    const format = '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{"\\n"}}{{end}}';
    return (await docker("inspect", "hotpush-caddy-1", "--format", format)).split("\n").sort();
  };
  return {
    ...{ files, state, docker, compose, caddyNetworks },
    addProject(name) {
      // Each has an address of the loopback network, because names would have to be resolved.
      const host = `127.0.0.${names.push(name) + 1}`;
      const onStart = () => started.add(name);
      return writeProject(name, { directory, files, state, host, port, env: labEnv, onStart });
    },
    async untilJoined(names, withinMs) {
      const wanted = [serverNetwork, frontNetwork, ...names.map(projectNetwork)].sort().join();
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
      for (const name of started) await removeFromEngine(docker, name);
      await compose("down", "--timeout", "1");
      await removeNetworks(docker);
      await removeImage(labEnv, hotpushImage);
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
}

function writeServer(files: ServerFiles, state: ServerState, { directory, port, socket }: Place): void {
  const paths = [files.sitesPath, files.projectsPath, files.secretsPath];
  for (const path of [...paths, ...Object.values(state)]) mkdirSync(path, { recursive: true });
  chownSync(state.front, frontUid, frontUid);
  writeFileSync(join(state.live, "closing"), "no");
  const settings = {
    HOTPUSH_IMAGE: hotpushImage,
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

async function removeNetworks(docker: ServerLab["docker"]): Promise<void> {
  const ids = await docker("network", "ls", "--quiet", "--filter", "label=hotpush.project");
  if (ids !== "") await docker("network", "rm", ...ids.split("\n"));
}
