import { join } from "node:path";

/** The compose project of the server, of which an engine has one. */
export const serverComposeProject = "hotpush";
/** Its services. */
export const serverServices = { caddy: "caddy", front: "front", run: "run" } as const;
/** Caddy's own network. It sorts before those of the projects, so that it stays Caddy's gateway. */
export const serverNetwork = "hotpush";
/** Where Caddy and `run` see the live directory. */
export const liveMount = "/run/live";
/** Caddy's admin API is on this socket in the live directory. */
export const adminSocket = "admin.sock";
/** Where Caddy sees the files of the server. */
export const caddyMount = "/etc/caddy";

/** The name of the project that the environment describes. */
export const onlyProjectName = "default";

/** Matches a name that can be a file, a path of a URL and part of a Docker network as it stands. */
export const projectNamePattern = "[a-z0-9][a-z0-9-]{0,38}";

const wholeProjectName = new RegExp(`^${projectNamePattern}$`);

export function isProjectName(text: string): boolean {
  return wholeProjectName.test(text);
}

/** Names that no project may have: those of networks, services and directories of the server, and of the only project. */
export const reservedNames: readonly string[] = ["caddy", "front", "run", "page", "hotpush", "default"];

/** The directory of the server: SERVER_PATH, else `/etc/hotpush`. */
export function serverPathOf({ SERVER_PATH }: NodeJS.ProcessEnv): string {
  return SERVER_PATH || "/etc/hotpush";
}

/**
 * The state directory of a new server. The one of a server that is there is `STATE_PATH` of its `.env`.
 *
 * @param env with SERVER_PATH, the state is inside it, so that tests and second engines have one of their own
 */
export function newServerStatePath({ SERVER_PATH }: NodeJS.ProcessEnv): string {
  return SERVER_PATH ? join(SERVER_PATH, "state") : "/var/lib/hotpush";
}

/** The files and directories of the configuration of the server in `path`, which is SERVER_PATH. */
export function serverFilesAt(path: string) {
  return {
    path,
    composeFile: join(path, "compose.yaml"),
    caddyfile: join(path, "Caddyfile"),
    envFile: join(path, ".env"),
    sitesPath: join(path, "sites"),
    projectsPath: join(path, "projects"),
    secretsPath: join(path, "secrets"),
  } as const;
}

export type ServerFiles = Readonly<ReturnType<typeof serverFilesAt>>;

/** The directories of the server's state in `path`. */
export function serverStateAt(path: string) {
  return {
    path,
    /** STATE_PATH of `run` */
    run: join(path, "run"),
    /** STATE_PATH of `front` */
    front: join(path, "front"),
    /** The directory of the socket on which `front` calls `run`. */
    socket: join(path, "socket"),
    /** Mounted at `liveMount`: Caddy's admin socket, and a directory of live files for each project. */
    live: join(path, "live"),
    /** Caddy's certificates. */
    caddy: join(path, "caddy"),
    /** A directory for each project: STATE_PATH of its scripts. */
    projects: join(path, "projects"),
  } as const;
}

export type ServerState = Readonly<ReturnType<typeof serverStateAt>>;

/** What a person types about the services of the server in `path`, from any directory. */
export function serverCommands({ path }: Pick<ServerFiles, "path">) {
  const compose = `docker compose --project-directory ${path}`;
  return {
    start: `${compose} up --detach --wait`,
    logsOf: (...services: readonly string[]) => `${compose} logs --tail 50 ${services.join(" ")}`,
  };
}

/** The network on which Caddy reaches the published services of a project. */
export function projectNetwork(project: string): string {
  return `${serverNetwork}-${project}`;
}

/** The project that a network belongs to by its name, or null. */
export function projectOfNetwork(network: string): string | null {
  const prefix = `${serverNetwork}-`;
  const project = network.startsWith(prefix) ? network.slice(prefix.length) : "";
  return project === "" || reservedNames.includes(project) ? null : project;
}

/** The name of a service on its project's network. The public DNS never has it, because `.internal` is reserved. */
export function serviceAlias(service: string, project: string): string {
  return `${service}.${project}.containers.internal`;
}

/** The state directory: STATE_PATH, else by the XDG base directory specification (`$HOME/.local/state` by default). */
export function stateDirectoryOf(env: NodeJS.ProcessEnv): string {
  const { STATE_PATH, XDG_STATE_HOME, HOME } = env;
  return STATE_PATH || `${XDG_STATE_HOME || `${HOME || "/var/lib"}/.local/state`}/hotpush`;
}

/** The operator's socket of the service whose state is in `statePath`. */
export function operatorSocketPath(statePath: string): string {
  return join(statePath, "control.sock");
}
