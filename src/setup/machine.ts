import { constants, existsSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { serverComposeProject, serverServices } from "#config/server";
import { wholeNumber } from "#config/values";
import {
  connectEngine,
  dockerSocketPath,
  type Engine,
  filteredBy,
  getJson,
  nullIfMissing,
} from "#platform/docker/engine";
import { isAllowed, kindOf } from "#platform/files";
import { type Argv, outputOf } from "#platform/run-command";
import { CommandError } from "#problems";
import type { SetupProject } from "./project.ts";
import { findServer, real, runContainer, type Server, serverAt } from "./server.ts";

/** The server that a project is added to, or that is made with it. */
export interface ServerPlace extends Server {
  readonly isNew: boolean;
  /** The ports of the machine that Caddy has for http and https. */
  readonly ports: { readonly http: number; readonly https: number };
  /** The Docker socket of this machine, for Hotpush in a container. */
  readonly dockerSocket: string;
}

/**
 * Finds the server, or decides where it will be.
 *
 * @throws CommandError if this user may not change it, the engine has another one, or DOCKER_HOST is not a Unix socket, which a
 * container could share
 */
export async function findServerPlace(env: NodeJS.ProcessEnv): Promise<ServerPlace> {
  const server = serverAt(env);
  const isNew = findServer(env) === null;
  const { path } = server.files;
  const dockerSocket = dockerSocketPath(env.DOCKER_HOST || undefined);
  if (dockerSocket === null)
    throw new CommandError(
      `DOCKER_HOST is ${env.DOCKER_HOST}. Hotpush runs beside the containers that it deploys: run this on the server itself, without DOCKER_HOST.`,
    );
  if (!isNew && !isAllowed(server.files.projectsPath, constants.W_OK)) {
    throw new CommandError(`Only the owner of ${path} may add projects to this server. Run this with sudo.`);
  }
  // If the engine does not answer, a later step says so.
  const info = await getJson<EngineInfo>(connectEngine(env.DOCKER_HOST), "/info").catch(() => null);
  if (info?.SecurityOptions?.some((one) => one.startsWith("name=rootless")))
    throw new CommandError(
      "This Docker engine runs in rootless mode, and Hotpush needs one of root: its containers start each script as the owner of the checkout, and share files with this machine. Install Docker for the whole machine: https://docs.docker.com/engine/install/",
    );
  // Two would have the same containers, and each init would take them from the other.
  const own = (await listAllContainers(env)).filter(({ project }) => project === serverComposeProject);
  const other = own.find(({ directory }) => real(directory) !== real(path))?.directory;
  if (other !== undefined)
    throw new CommandError(
      `This Docker engine has a compose project called ${serverComposeProject} already, in ${other}. If it is that of Hotpush, use it: SERVER_PATH=${other} hotpush init. Else remove it or rename it, because an engine has only one project of that name: docker compose --project-name ${serverComposeProject} down`,
    );
  // They can be chosen in the environment when the server is made. Later, they are in its .env.
  const ports = {
    http: portOf("HTTP_PORT", server.env.HTTP_PORT || env.HTTP_PORT || "80"),
    https: portOf("HTTPS_PORT", server.env.HTTPS_PORT || env.HTTPS_PORT || "443"),
  };
  return { ...server, isNew, ports, dockerSocket };
}

interface EngineInfo {
  readonly SecurityOptions?: readonly string[];
}

/**
 * Refuses a remote on this machine's own loopback, which is the container's in `run`.
 *
 * @throws CommandError
 */
export function refuseLocalRemote({ root, remote }: SetupProject): void {
  if (remote === null || !/^(?:localhost|.*\.localhost|127\.[\d.]+|\[::1\])$/.test(remote.hostname)) return;
  throw new CommandError(
    `The remote origin is at ${remote.hostname}. Hotpush fetches it from a container, and there ${remote.hostname} is the container itself. Give the remote an address of this machine at which the git server listens, such as its public name: git -C ${root} remote set-url origin <address>`,
  );
}

function portOf(name: string, text: string): number {
  const port = wholeNumber(text, 1, 65_535);
  if (port === null)
    throw new CommandError(`${name} is ${JSON.stringify(text)}: expected a port from 1 to 65535.`);
  return port;
}

/**
 * The services of the project in `root` that have ports which Caddy needs.
 *
 * @param ports all that Caddy needs, also those that it has
 * @throws CommandError if somebody else has one
 */
export async function findPortHolders(
  root: string,
  ports: readonly number[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const containers = await listAllContainers(env);
  const holders = ports.flatMap((port) =>
    containers.filter((one) => one.ports.includes(port)).map((one) => ({ ...one, port })),
  );
  const others = holders.filter(
    ({ project, service }) => project !== serverComposeProject || service !== serverServices.caddy,
  );
  const foreign = others.find(({ directory }) => directory === "" || real(directory) !== real(root));
  if (foreign !== undefined) {
    const { port, name, project, directory } = foreign;
    const of = project === "" ? "" : ` of the compose project ${project} in ${directory}`;
    throw takenError(port, `the container ${name}${of}`, env);
  }
  const taken = ports.find((port) => isPortTaken(port) && !holders.some((one) => one.port === port));
  if (taken !== undefined) throw takenError(taken, "another program", env);
  return [...new Set(others.map(({ service }) => service))];
}

function takenError(port: number, holder: string, env: NodeJS.ProcessEnv): CommandError {
  const { files, env: own } = serverAt(env);
  const isWritten = own.HTTP_PORT !== undefined || own.HTTPS_PORT !== undefined;
  const other = "HTTP_PORT=8080 HTTPS_PORT=8443";
  const choice = isWritten
    ? ` in ${files.envFile} (${other}), and run this again`
    : `: ${other} hotpush init`;
  return new CommandError(
    `Caddy of the server needs port ${port}, which ${holder} has. Stop it; or, if a proxy of your own stays in front, choose other ports${choice}`,
  );
}

/** @returns all containers; none if the engine does not answer */
export async function listAllContainers({ DOCKER_HOST: host }: NodeJS.ProcessEnv) {
  return await Promise.resolve(host)
    .then((host) => listByFilter(connectEngine(host)))
    .catch(() => []);
}

/** The containers of the engine that `filters` name, running or not, with the labels that compose gives them. */
export async function listByFilter(engine: Engine, filters: Parameters<typeof filteredBy>[0] = {}) {
  const path = `/containers/json?all=1&${filteredBy(filters)}`;
  const listed = await getJson<readonly ListedContainer[]>(engine, path);
  return listed.map(({ Id, Names, Labels, Ports, State, NetworkSettings }) => ({
    id: Id,
    name: Names[0]?.replace(/^\//, "") ?? "",
    /** Ports of this machine. */
    ports: Ports.flatMap(({ PublicPort, Type }) => (PublicPort && Type === "tcp" ? [PublicPort] : [])),
    /** The names of those that it is on, or will be on when it starts. */
    networks: Object.keys(NetworkSettings.Networks ?? {}),
    /** The compose project and its directory; "" without one. */
    project: Labels["com.docker.compose.project"] ?? "",
    directory: Labels["com.docker.compose.project.working_dir"] ?? "",
    service: Labels["com.docker.compose.service"] ?? "",
    composeFiles: (Labels["com.docker.compose.project.config_files"] ?? "").split(",").filter(Boolean),
    envFiles: (Labels["com.docker.compose.project.environment_file"] ?? "").split(",").filter(Boolean),
    isRunning: State === "running",
  }));
}

interface ListedContainer {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
  readonly State: string;
  readonly Ports: readonly { readonly PublicPort?: number; readonly Type: string }[];
  readonly NetworkSettings: { readonly Networks: Readonly<Record<string, unknown>> | null };
}

const digestTimeoutMs = 30_000;

interface Mounted {
  readonly Mounts: readonly { readonly Source?: string; readonly Destination: string }[];
}

/**
 * Whether `run` has an earlier version of a file of this machine, such as an /etc/passwd without a new user. A container keeps the file
 * that it was started with, and a change usually is a new file in its place.
 *
 * @returns false also if `run` does not run
 */
export async function hasOldFiles(engine: Engine, env: NodeJS.ProcessEnv): Promise<boolean> {
  const found = await nullIfMissing(getJson<Mounted>(engine, `/containers/${runContainer}/json`));
  const files = found?.Mounts.filter(({ Source = "" }) => kindOf(Source) === "file") ?? [];
  if (files.length === 0) return false;
  const sources = files.map(({ Source = "" }) => Source);
  const targets = files.map(({ Destination }) => Destination);
  const digests = async (...argv: Argv) => {
    const listed = await outputOf(argv, { env, timeoutMs: digestTimeoutMs });
    return listed?.split("\n").map((line) => line.split(" ", 1)[0]);
  };
  const here = await digests("sha256sum", ...sources);
  const there = await digests("docker", "exec", runContainer, "sha256sum", ...targets);
  return here !== undefined && there !== undefined && !isDeepStrictEqual(here, there);
}

/** Whether a program on this machine listens on the TCP port `port`, on any address. */
function isPortTaken(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  // 0A is LISTEN. Without IPv6 there is no second table.
  const listening = new RegExp(`^ *\\d+: \\w+:${hex} \\w+:0000 0A `, "m");
  const tables = ["/proc/net/tcp", "/proc/net/tcp6"].filter((path) => existsSync(path));
  return tables.some((path) => listening.test(readFileSync(path, "utf8")));
}
