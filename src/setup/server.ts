import { constants, existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { isProjectName } from "#config/project-files";
import {
  newServerStatePath,
  projectNetwork,
  type ServerFiles,
  type ServerState,
  serverComposeProject,
  serverFilesAt,
  serverPathOf,
  serverServices,
  serverStateAt,
} from "#config/server";
import type { Environment } from "#config/settings";
import { wholeNumber } from "#config/values";
import { isAllowed } from "#platform/files";
import { isPortTaken } from "#platform/listen";
import { outputOf, runCommand } from "#platform/run-command";
import { CommandError } from "#problems";
import { SetupError } from "./planned-file.ts";

/** The server, as a command on the machine finds it. */
export interface Server {
  readonly files: ServerFiles;
  readonly state: ServerState;
  /** The variables of its .env. */
  readonly env: Environment;
}

/** A project of the server, and the variables of its file. */
export interface ServerProject {
  readonly name: string;
  readonly file: string;
  readonly env: Environment;
}

/** Finds the server on this machine: that of this user, else that of root. */
export function findServer(env: Environment): Server | null {
  const isOurs = process.getuid?.() === 0;
  return findAt(env, isOurs) ?? (isOurs ? null : findAt(env, true));
}

function findAt(env: Environment, isRoot: boolean): Server | null {
  const files = serverFilesAt(serverPathOf(env, isRoot));
  if (!existsSync(files.composeFile)) return null;
  const own = readVariables(files.envFile) ?? {};
  return { files, state: serverStateAt(own.STATE_PATH || newServerStatePath(env, isRoot)), env: own };
}

/**
 * The project that a command is about, for one that changes or uses its file: the named one, else that of `directory`.
 *
 * @returns null if the directory is in no checkout of the server, or in one with a Hotpush of its own
 * @throws CommandError if there is no project with this name, or this user may not read the projects
 */
export function chooseProject(
  server: Server,
  directory: string,
  name: string | undefined,
): ServerProject | null {
  const project = name === undefined ? findProjectAround(server, directory) : findServerProject(server, name);
  if (project !== null || hasOwnHotpush(server, directory)) return project;
  const { projectsPath } = server.files;
  if (!isAllowed(projectsPath, constants.R_OK | constants.X_OK))
    throw new CommandError(`Only root may read the projects in ${projectsPath}. Run this with sudo.`);
  if (name === undefined) return null;
  const names = namesIn(projectsPath).toSorted().join(", ") || "none";
  throw new CommandError(`There is no project ${name} in ${projectsPath}. The projects are: ${names}.`);
}

/** The project with this name, or null if there is none, or this user may not read it. */
export function findServerProject({ files }: Server, name: string): ServerProject | null {
  const file = join(files.projectsPath, `${name}.env`);
  const env = isProjectName(name) ? readVariables(file) : null;
  return env && { name, file, env };
}

/** The projects that this user may read. */
export function listServerProjects(server: Server): readonly ServerProject[] {
  return namesIn(server.files.projectsPath).flatMap((name) => findServerProject(server, name) ?? []);
}

/** The project whose checkout `directory` is in; null if it is in none, or this user may not read the projects. */
export function findProjectAround(server: Server, directory: string): ServerProject | null {
  const byCheckout = new Map(
    listServerProjects(server).map((project) => [real(project.env.REPO_PATH ?? ""), project]),
  );
  const around = directoriesAround(real(directory)).find((path) => byCheckout.has(path));
  return (around !== undefined && byCheckout.get(around)) || null;
}

/**
 * Whether `directory` is in a checkout with a Hotpush of its own, outside of the server: then that one is meant.
 */
export function hasOwnHotpush(server: Server, directory: string): boolean {
  if (findProjectAround(server, directory) !== null) return false;
  return directoriesAround(real(directory)).some((path) => {
    const env = readVariables(join(path, ".env"));
    return Boolean(env?.WEBHOOK_SECRET || env?.WEBHOOK_SECRET_FILE);
  });
}

/** The files of removed projects: they have secrets in them, which nobody may lose by mistake. */
export function removedFiles({ path }: ServerFiles): ServerFiles {
  return serverFilesAt(join(path, "removed"));
}

function namesIn(projectsPath: string): readonly string[] {
  try {
    const files = readdirSync(projectsPath).filter((file) => file.endsWith(".env"));
    return files.map((file) => file.slice(0, -".env".length));
  } catch {
    return [];
  }
}

function directoriesAround(path: string): readonly string[] {
  return path === dirname(path) ? [path] : [path, ...directoriesAround(dirname(path))];
}

function readVariables(path: string): Environment | null {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

/** The server that a project is added to, or that is made with it. */
export interface ServerPlace extends Server {
  readonly isNew: boolean;
  /** The ports of the machine that Caddy has for http and https. */
  readonly ports: { readonly http: number; readonly https: number };
}

/**
 * Finds the server, or decides where it will be.
 *
 * @throws SetupError if this user may not change it, or the engine has another one
 */
export async function findServerPlace(env: NodeJS.ProcessEnv): Promise<ServerPlace> {
  const found = findServer(env);
  const isRoot = process.getuid?.() === 0;
  const server = found ?? {
    files: serverFilesAt(serverPathOf(env, isRoot)),
    state: serverStateAt(newServerStatePath(env, isRoot)),
    env: {},
  };
  const { path } = server.files;
  if (found !== null && !isAllowed(server.files.projectsPath, constants.W_OK)) {
    throw new SetupError(`Only the owner of ${path} may add projects to this server. Run this with sudo.`);
  }
  await refuseOtherServer(path, env);
  // They can be chosen in the environment when the server is made. Later, they are in its .env.
  const ports = {
    http: portOf("HTTP_PORT", server.env.HTTP_PORT || env.HTTP_PORT || "80"),
    https: portOf("HTTPS_PORT", server.env.HTTPS_PORT || env.HTTPS_PORT || "443"),
  };
  return { ...server, isNew: found === null, ports };
}

/** Two would have the same containers, and each init would take them from the other. */
async function refuseOtherServer(path: string, env: NodeJS.ProcessEnv): Promise<void> {
  const format = '{{.Label "com.docker.compose.project.working_dir"}}';
  const filter = `label=com.docker.compose.project=${serverComposeProject}`;
  const directories = await listContainers(["--all", "--filter", filter, "--format", format], env);
  const other = directories.find((directory) => real(directory) !== real(path));
  if (other === undefined) return;
  throw new SetupError(
    `This Docker engine has a compose project called ${serverComposeProject} already, in ${other}. If it is that of Hotpush, use it: SERVER_PATH=${other} hotpush init. Else remove it or rename it, because an engine has only one project of that name: docker compose --project-name ${serverComposeProject} down`,
  );
}

function portOf(name: string, text: string): number {
  const port = wholeNumber(text, 1, 65_535);
  if (port === null)
    throw new SetupError(`${name} is ${JSON.stringify(text)}: expected a port from 1 to 65535.`);
  return port;
}

/** A running container that publishes a port of the machine. */
interface Publisher {
  readonly port: number;
  readonly container: string;
  /** Its compose project and the directory of that; "" without one. */
  readonly project: string;
  readonly directory: string;
  readonly service: string;
}

/**
 * The services of the project in `root` that have ports which Caddy needs.
 *
 * @param ports all that Caddy needs, also those that it has
 * @throws SetupError if somebody else has one
 */
export async function findPortHolders(
  root: string,
  ports: readonly number[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const published = (await Promise.all(ports.map((port) => listPublishers(port, env)))).flat();
  const others = published.filter(
    ({ project, service }) => project !== serverComposeProject || service !== serverServices.caddy,
  );
  const foreign = others.find(({ directory }) => directory === "" || real(directory) !== real(root));
  if (foreign !== undefined) throw takenError(foreign.port, containerText(foreign));
  const taken = ports.find((port) => isPortTaken(port) && !published.some((one) => one.port === port));
  if (taken !== undefined) throw takenError(taken, "another program");
  return [...new Set(others.map(({ service }) => service))];
}

async function listPublishers(port: number, env: NodeJS.ProcessEnv): Promise<readonly Publisher[]> {
  const label = (name: string) => `{{.Label "com.docker.compose.${name}"}}`;
  const format = ["{{.Names}}", label("project"), label("project.working_dir"), label("service")].join("\t");
  const lines = await listContainers(["--filter", `publish=${port}`, "--format", format], env);
  return lines.map((line) => {
    const [container = "", project = "", directory = "", service = ""] = line.split("\t");
    return { port, container, project, directory, service };
  });
}

function containerText({ container, project, directory }: Publisher): string {
  const of = project === "" ? "" : ` of the compose project ${project} in ${directory}`;
  return `the container ${container}${of}`;
}

function takenError(port: number, holder: string): SetupError {
  const wayOut =
    port === 80 || port === 443
      ? "Stop it; or, if a proxy of your own stays in front, choose other ports: HTTP_PORT=8080 HTTPS_PORT=8443 hotpush init"
      : "Stop it, or choose another place: hotpush init --url https://<host name>, or --at <service>=:<port>";
  return new SetupError(`Caddy of the server needs port ${port}, which ${holder} has. ${wayOut}`);
}

/** A project in its checkout `root`, with the services that Caddy serves. */
export interface ProjectOnMachine {
  readonly name: string;
  readonly root: string;
  readonly published: readonly string[];
}

/** Whether the project runs in containers that Caddy reaches: those of its published services are on its network. */
export async function isProjectUp(
  { name, root, published }: ProjectOnMachine,
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  const format = ["--format", '{{.Label "com.docker.compose.service"}}'];
  const ofProject = ["--filter", `label=com.docker.compose.project.working_dir=${root}`, ...format];
  const [onNetwork, all] = await Promise.all([
    listContainers(["--filter", `network=${projectNetwork(name)}`, ...ofProject], env),
    listContainers(ofProject, env),
  ]);
  return all.length > 0 && published.every((service) => onNetwork.includes(service));
}

const getentTimeoutMs = 10_000;
/** As getent(1) has it. */
const getentNotFound = 2;

/**
 * Whether `run` knows the user with this id. A container keeps the /etc/passwd that it was started with, because a change of
 * that file is a new file.
 */
export async function isUserKnown(uid: number, env: NodeJS.ProcessEnv): Promise<boolean> {
  const labels = [`project=${serverComposeProject}`, `service=${serverServices.run}`];
  const filters = labels.flatMap((label) => ["--filter", `label=com.docker.compose.${label}`]);
  const [container] = await listContainers([...filters, "--format", "{{.ID}}"], env);
  if (container === undefined) return true;
  const argv = ["docker", "exec", container, "getent", "passwd", String(uid)] as const;
  const ending = await runCommand({ argv, env, timeoutMs: getentTimeoutMs });
  return !(ending.kind === "exited" && ending.code === getentNotFound);
}

/** @returns a line for each container; none if the engine does not answer */
async function listContainers(
  options: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<readonly string[]> {
  const output = await outputOf(["docker", "ps", ...options], { env });
  return output?.split("\n").filter(Boolean) ?? [];
}

/** The facts of this machine that matter to Hotpush in a container. */
export interface Machine {
  readonly dockerSocket: string;
  /** The id of the group that may use it. */
  readonly dockerGroup: number;
}

/**
 * Reads them.
 *
 * @throws SetupError if DOCKER_HOST is not a Unix socket, which a container could share
 */
export function findMachine(env: NodeJS.ProcessEnv): Machine {
  const dockerSocket = socketPath(env.DOCKER_HOST);
  return {
    dockerSocket,
    dockerGroup: statSync(dockerSocket, { throwIfNoEntry: false })?.gid ?? 0,
  };
}

function socketPath(dockerHost: string | undefined): string {
  if (!dockerHost) return "/var/run/docker.sock";
  if (dockerHost.startsWith("unix://")) return dockerHost.slice("unix://".length);
  throw new SetupError(
    `DOCKER_HOST is ${dockerHost}. Hotpush runs beside the containers that it deploys: run this on the server itself, without DOCKER_HOST.`,
  );
}
