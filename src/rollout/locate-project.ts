import { constants, existsSync, realpathSync } from "node:fs";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import {
  adminSocket,
  liveMount,
  projectOfNetwork,
  type ServerState,
  serverComposeProject,
  serverServices,
  serverStateAt,
  serviceAlias,
  stateDirectoryOf,
} from "#config/server";
import {
  type ComposeModel,
  type ComposeTarget,
  composeFileNames,
  composeOverrideNames,
  isWrittenByInit,
  loadModel,
  namedFiles,
} from "#platform/compose";
import {
  type Container,
  type ContainerMount,
  findOwnContainer,
  listContainers,
} from "#platform/docker/containers";
import { type Engine, filteredBy, getJson, nullIfMissing } from "#platform/docker/engine";
import { withDotenv } from "#platform/env-file";
import { attempt, isAllowed, statOf } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { ProblemError } from "#problems";
import type { LiveDirectory, RolloutRequest } from "./context.ts";
import type { Version } from "./state.ts";

/**
 * Gives the compose project with its path on the host. In a container, the repository may be mounted at another path.
 * The engine resolves bind mounts on the host, so compose needs the host's path.
 *
 * @throws ProblemError `repository_not_mounted` if that path cannot be made to work in this container, with the line
 * to change
 */
export async function locateProject(engine: Engine, target: ComposeTarget): Promise<ComposeTarget> {
  const directory = resolve(target.projectDirectory);
  const own = await findOwnContainer(engine);
  if (own === null) return { ...target, projectDirectory: directory };
  const projectDirectory = hostPathOf(own.mounts, directory);
  if (projectDirectory === null) {
    const detail = `${directory} is not mounted from the host, so the engine cannot see it. In the compose file, under Hotpush's volumes, mount the repository at the path that it has on the host, such as "/srv/shop:/srv/shop", and set REPO_PATH to that path.`;
    throw new ProblemError({ code: "repository_not_mounted", detail });
  }
  if (projectDirectory !== directory) await standIn(directory, projectDirectory);
  return { ...target, projectDirectory, ...startedAs(own, target, projectDirectory) };
}

/** The path of `directory` on the host, which identifies a project. Without a mount it is `directory` itself. */
export async function hostDirectoryOf(engine: Engine, directory: string): Promise<string> {
  const own = await findOwnContainer(engine);
  return (own && hostPathOf(own.mounts, directory)) ?? directory;
}

/** The host's path of `path`, by the innermost mount that contains it; null if it is not mounted. */
export function hostPathOf(mounts: Mounts, path: string): string | null {
  const holding = mounts.filter(({ target }) => path === target || path.startsWith(`${target}/`));
  const [innermost] = holding.toSorted((a, b) => b.target.length - a.target.length);
  return innermost ? join(innermost.source, relative(innermost.target, path)) : null;
}

/**
 * Refuses a project under whose name another checkout has containers: directories with the same name are one project to compose. A
 * directory that is gone, or leads here, is none.
 *
 * @param projectDirectory as the host sees it
 * @param current the newest good version of this checkout: its containers are this one's, wherever they were started
 * @returns `containers` without those that another checkout has left, or may have, of services that this one does not have
 * @throws ProblemError `project_name_taken`
 */
export async function withoutNeighbors(
  engine: Engine,
  projectDirectory: string,
  { name, services }: Pick<ComposeModel, "name" | "services">,
  containers: readonly Container[],
  current: Version | null,
): Promise<readonly Container[]> {
  const isRecorded = ({ id, image, service }: Container) => {
    const recorded = current?.images[service];
    return recorded?.containers?.includes(id) ?? recorded?.id === image;
  };
  const directoryOf = ({ labels }: Container) =>
    labels["com.docker.compose.project.working_dir"] || projectDirectory;
  const elsewhere = containers.filter((one) => directoryOf(one) !== projectDirectory && !isRecorded(one));
  const own = elsewhere.length === 0 ? null : await findOwnContainer(engine);
  const isService = ({ service }: Container) => Object.hasOwn(services, service);
  const root = realPath(visiblePath(own, projectDirectory) ?? projectDirectory);
  const left = elsewhere.filter((one) => {
    const path = visiblePath(own, directoryOf(one));
    // Unseen from this container, the directory may also be an older one of this project.
    if (path === null) return !isService(one);
    if (!existsSync(path) || realPath(path) === root) return false;
    if (one.status !== "running" && !isService(one)) return true;
    const detail = `docker compose calls this project ${name}, like the one in ${directoryOf(one)}, whose container ${one.name} would be taken for one of this project. Nothing was changed. Give one of them a name of its own: hotpush init in this checkout does it or says how; without Hotpush's server, COMPOSE_PROJECT_NAME=<name> in .env. If the other checkout is out of use, this one can take the service over with its data instead: docker compose up --detach --no-deps --force-recreate ${one.service}`;
    throw new ProblemError({ code: "project_name_taken", detail });
  });
  return containers.filter((one) => !left.includes(one));
}

/** Where this process sees a directory of the host; null if it is in a container that does not have it. */
function visiblePath(own: Pick<Container, "mounts"> | null, path: string): string | null {
  // The mounts, seen from the other side.
  if (own === null) return path;
  return hostPathOf(
    own.mounts.map(({ source, target }) => ({ source: target, target: source })),
    path,
  );
}

function realPath(path: string): string {
  return attempt(() => realpathSync(path), path);
}

/**
 * Refuses a project of a server if a push has added an override: compose reads only one by itself, and git replaces an ignored file,
 * as ours is, by a tracked one. Caddy would not reach the new containers, or they would lack what the push says.
 *
 * @throws ProblemError `override_lost`
 */
export async function refuseLostOverride(
  engine: Engine,
  { projectDirectory }: ComposeTarget,
  model: ComposeModel,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  if (namedFiles(withDotenv(env, projectDirectory)).length > 0) return;
  const present = composeOverrideNames.map((name) => join(projectDirectory, name)).filter(existsSync);
  const theirs = present.find((path) => !isWrittenByInit(path));
  if (theirs === undefined) return;
  const isOursThere = present.some(isWrittenByInit);
  const scripts = isOursThere || !env.STATE_PATH ? null : (await findServerState(engine))?.projects;
  const isScript = env.STATE_PATH !== undefined && scripts === dirname(env.STATE_PATH);
  if (!isOursThere && (!isScript || projectOnServer(model) !== null)) return;
  const detail = `${theirs} is new, and compose reads only one override by itself: Hotpush's was in that place. Nothing was changed. In the checkout, run: hotpush init. Then deploy again.`;
  throw new ProblemError({ code: "override_lost", detail });
}

/**
 * If the project that Hotpush deploys has started it, the name and the files of that start are used: `docker compose
 * -p shop -f prod.yaml up` need not be repeated.
 */
function startedAs(
  { labels }: Pick<Container, "labels">,
  { files }: ComposeTarget,
  hostDirectory: string,
): Partial<ComposeTarget> {
  const label = (name: string) => labels[`com.docker.compose.project${name}`];
  const name = label("");
  if (name === undefined || label(".working_dir") !== hostDirectory) return {};
  const used = (label(".config_files") ?? "").split(",").filter(Boolean);
  const areUsual = used.every((file) => /\/(?:docker-)?compose(?:\.override)?\.ya?ml$/.test(file));
  return { projectName: name, files: files.length > 0 || areUsual ? files : used };
}

/** Paths on the host, and those in the container where they are mounted. */
type Mounts = readonly Pick<ContainerMount, "source" | "target">[];

/** Links the host's path to the repository in this container, so that one path works for both. */
async function standIn(directory: string, hostDirectory: string): Promise<void> {
  try {
    await mkdir(dirname(hostDirectory), { recursive: true });
    await symlink(directory, hostDirectory);
  } catch (error) {
    // An earlier one has linked it, or the repository is mounted at both paths.
    const one = statOf(directory);
    const two = statOf(hostDirectory);
    if (two !== null && one?.dev === two.dev && one.ino === two.ino) return;
    const detail = `The repository is ${hostDirectory} on the host, but ${directory} in this container, and no link to it can be made here. In the compose file, under Hotpush's volumes, write "${hostDirectory}:${hostDirectory}", and set REPO_PATH to ${hostDirectory}.`;
    throw new ProblemError({ code: "repository_not_mounted", detail }, error);
  }
}

/**
 * Refuses to work outside of the container in which the project's own Hotpush runs, and keeps the lock and the good
 * versions. From outside, two roll-outs could run at once, and prune would remove images that a roll back needs.
 *
 * @param projectDirectory as the host sees it
 * @param env `STATE_PATH` in it confirms that the state is the right one; the image sets it
 * @throws ProblemError `state_unusable` with the container to run the command in
 */
export async function refuseOtherState(
  engine: Engine,
  projectDirectory: string,
  { STATE_PATH }: NodeJS.ProcessEnv,
): Promise<void> {
  if (STATE_PATH) return;
  const label = [
    "org.opencontainers.image.title=Hotpush",
    `com.docker.compose.project.working_dir=${projectDirectory}`,
  ];
  const path = `/containers/json?${filteredBy({ label, status: ["running"] })}`;
  const [container] = await getJson<readonly { readonly Names: readonly string[] }[]>(engine, path);
  if (!container) return;
  const name = container.Names[0]?.replace(/^\//, "") ?? "";
  const detail = `Hotpush runs in the container ${name}, which holds the lock of this project's roll-outs and the list of its good versions. Run the command there: docker exec ${name} hotpush ... Nothing was changed. (With STATE_PATH set, it runs here, on the state in that directory.)`;
  throw new ProblemError({ code: "state_unusable", detail });
}

/**
 * The state directory of a project's roll-outs. For a project on the server it is the one that its deploy script
 * gets as STATE_PATH, also by hand: so a roll-out by hand and one by the script exclude each other, and know the same
 * good versions.
 *
 * @throws ProblemError `state_unusable` if this user may not use it
 */
export async function findStatePath(
  engine: Engine,
  target: ComposeTarget,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  // The server's own container has another STATE_PATH, that of the service.
  if (env.STATE_PATH && !env.SERVER_STATE_PATH) return env.STATE_PATH;
  const machine = await findServerState(engine);
  if (machine === null) return stateDirectoryOf(env);
  // If compose cannot read the project, the roll-out reports that, with compose's message.
  const model = await loadModel({ target, env }).catch(() => null);
  const project = model && projectOnServer(model);
  if (project === null) return stateDirectoryOf(env);
  const path = join(machine.projects, project);
  if (isAllowed(path, constants.W_OK | constants.X_OK)) return path;
  const detail = `The lock of the roll-outs of ${project} and the list of its good versions are in ${path}, which this user cannot use. ${adviceOnServer(path)}`;
  throw new ProblemError({ code: "state_unusable", detail });
}

/** What to do about a directory of a project on the server that this user cannot use. */
function adviceOnServer(path: string): string {
  return existsSync(path)
    ? "Run the command as the owner of the checkout or as root. Nothing was changed."
    : "It is missing; the service run makes it when it starts: docker start hotpush-run-1. Nothing was changed.";
}

/**
 * The project on the server that a compose model belongs to, by its external network `hotpush-<name>`; null if it
 * is not on the server. If it is in the networks of several, its own is the one in which its services have
 * their names for the proxy, else the one with the name of the compose project.
 */
export function projectOnServer({ name, networks = {}, services }: ComposeModel): string | null {
  const joined = Object.entries(networks).flatMap(([key, network]) => {
    const project = network.external ? projectOfNetwork(network.name) : null;
    return project === null ? [] : [{ key, project }];
  });
  const aliased = joined.find(({ key, project }) =>
    Object.entries(services).some(([service, { networks: own }]) =>
      own?.[key]?.aliases?.includes(serviceAlias(service, project)),
    ),
  );
  const own = aliased ?? joined.find(({ project }) => project === name) ?? joined[0];
  return own?.project ?? null;
}

/**
 * Finds the state directories of the engine's server, as paths on this machine, by its containers, which may have stopped.
 *
 * @returns null if there is no server
 */
async function findServerState(engine: Engine): Promise<ServerState | null> {
  const containers = await listContainers(engine, serverComposeProject);
  const run = containers.find(({ service }) => service === serverServices.run);
  const caddy = containers.find(({ service }) => service === serverServices.caddy);
  const prefix = "SERVER_STATE_PATH=";
  const path = run?.environment.find((variable) => variable.startsWith(prefix))?.slice(prefix.length);
  if (!path) return null;
  const live = caddy?.mounts.find(({ target }) => target === liveMount)?.source;
  const state = serverStateAt(path);
  return { ...state, live: live ?? state.live };
}

/**
 * Finds the directory with the live files: HOTPUSH_LIVE_PATH of the environment, else what is mounted at /run/live in this
 * container, else, on the host, what the compose file mounts at /run/live in any service. For a project on the server it is
 * the project's own directory in what is mounted at /run/live in this container or, on the host, in the server's Caddy.
 *
 * @returns null if the project has none, or not yet (a volume that was never used)
 * @throws ProblemError `live_file_not_writable` if this process cannot write to it
 */
export async function findLiveDirectory(
  engine: Engine,
  model: ComposeModel,
  { HOTPUSH_LIVE_PATH: given }: NodeJS.ProcessEnv,
): Promise<LiveDirectory | null> {
  const project = projectOnServer(model);
  const find = async () => {
    if (await isMountedHere()) return join(liveMount, project ?? "");
    return project === null ? ownDirectory(engine, model) : directoryOnServer(engine, project);
  };
  const path = given || (await find());
  if (path === null) return null;
  if (isAllowed(path, constants.W_OK))
    return { path, adminSocket: join(project === null ? path : dirname(path), adminSocket), project };
  const alone = `In a container, mount the volume at ${liveMount} in Hotpush's own service; on the host, run as root.`;
  const advice = project === null ? alone : adviceOnServer(path);
  const detail = `The live files are in ${path}, and this process cannot write there. ${advice}`;
  throw new ProblemError({ code: "live_file_not_writable", detail });
}

async function directoryOnServer(engine: Engine, project: string): Promise<string> {
  const machine = await findServerState(engine);
  if (machine !== null) return join(machine.live, project);
  const detail = `${project} is on Hotpush's server (its network is external), and this engine has none: its containers were not found, so the live files were not either. Start it (docker compose up --detach, in /etc/hotpush), or set it up again, in the checkout: hotpush init. Nothing was changed.`;
  throw new ProblemError({ code: "live_file_not_writable", detail });
}

/** The directory of a project with a proxy of its own. */
async function ownDirectory(engine: Engine, model: ComposeModel): Promise<string | null> {
  const mounts = Object.values(model.services).flatMap((service) => service.volumes ?? []);
  const { type, source } = mounts.find(({ target }) => target === liveMount) ?? {};
  if (source === undefined || type === "bind") return source ?? null;
  const volume = model.volumes?.[source]?.name ?? `${model.name}_${source}`;
  const found = await nullIfMissing(getJson<{ readonly Mountpoint: string }>(engine, `/volumes/${volume}`));
  return found?.Mountpoint ?? null;
}

/** Whether this is a container with the live files mounted: the image has the directory even without them. */
async function isMountedHere(): Promise<boolean> {
  if (!existsSync("/.dockerenv")) return false;
  const mountInfo = await readFile("/proc/self/mountinfo", "utf8");
  return mountInfo.split("\n").some((line) => line.split(" ")[4] === liveMount);
}

/**
 * Whether a project is rolled out by compose or as a stack of a Swarm: as such if the file says `x-hotpush: { engine: swarm }`.
 *
 * @throws ProblemError `compose_invalid` if another engine is named
 */
export async function chooseEngine({ target, env }: Pick<RolloutRequest, "target" | "env">) {
  const { projectDirectory } = target;
  const files = stackFiles(target, withDotenv(env, projectDirectory));
  const engines = await Promise.all(files.map((file) => engineIn(resolve(projectDirectory, file))));
  const named = engines.findLast(Boolean) ?? "compose";
  if (named === "compose" || named === "swarm") return named;
  const detail = `x-hotpush.engine is "${named}", neither compose nor swarm.`;
  throw new ProblemError({ code: "compose_invalid", detail });
}

/** Reads the file itself, because compose would take longer than all else before a roll-out. */
async function engineIn(path: string): Promise<unknown> {
  try {
    const text = readForeignFile(path, { mostBytes: 1024 ** 2 }).toString();
    return text.includes("x-hotpush") && (await import("yaml")).parse(text)["x-hotpush"].engine;
  } catch {
    return null; // The roll-out itself reports a file that cannot be read, with compose's message.
  }
}

const stackFileNames = ["stack.yaml", "stack.yml", "docker-stack.yaml", "docker-stack.yml"];

/**
 * The files of the stack, which `docker stack deploy` does not look for by itself: the given ones, else COMPOSE_FILE,
 * else `stack.yaml`, `docker-stack.yaml` or the compose file in the project's directory. Files that only compose adds by
 * itself (`compose.override.yaml`) do not belong to a stack.
 */
export function stackFiles(target: ComposeTarget, env: NodeJS.ProcessEnv): readonly string[] {
  if (target.files.length > 0) return target.files;
  const named = namedFiles(env);
  if (named.length > 0) return named;
  const isThere = (name: string) => existsSync(join(target.projectDirectory, name));
  return [...stackFileNames, ...composeFileNames].filter(isThere).slice(0, 1);
}
