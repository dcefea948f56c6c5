import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { stateDirectoryOf } from "../config/state-path.ts";
import { callService, type ServicePlace } from "../control/client.ts";
import { controlSocketPath } from "../control/control-socket.ts";
import { findRemoteServer } from "../control/remote-server.ts";
import { withDotenv } from "../platform/env-file.ts";
import { openTerminal, type Terminal } from "../platform/terminal/terminal.ts";
import { findServer, findServerProject, hasOwnHotpush, type Server } from "../setup/server.ts";

/** What a command that calls the service works with. */
export interface ServiceAccess {
  readonly env: NodeJS.ProcessEnv;
  readonly place: ServicePlace;
  /** On standard output. */
  readonly terminal: Terminal;
  /** A path of the service with the project that this command is about, or what the service can find it by. */
  readonly ofProject: (path: string) => string;
  readonly get: <Answer>(path: string) => Promise<Answer>;
  /** Asks for something in the name of the person who runs this command. */
  readonly post: <Answer>(path: string, body?: object) => Promise<Answer>;
}

/** The options of each command that calls the service. */
export interface ProjectChoice {
  readonly project?: string | undefined;
  /** The project is that of this directory, by default the working directory. null: it must be named. */
  readonly directory?: string | null;
}

/** The functions throw as `callService`. */
export function accessService(
  env: NodeJS.ProcessEnv,
  { project, directory = "." }: ProjectChoice,
): ServiceAccess {
  const remote = findRemoteServer(env);
  const place = remote ?? statePathOf(env, { project, directory });
  // A directory of this machine means nothing on another one.
  const usual = remote === null ? { within: directoriesAround(directory) } : {};
  const query = new URLSearchParams(project === undefined ? usual : { project });
  const ofProject = (path: string) => `${path}${path.includes("?") ? "&" : "?"}${query}`;
  return {
    ...{ env, place, ofProject },
    terminal: openTerminal(process.stdout, env),
    get: (path) => callService(place, "GET", ofProject(path)),
    post(path, body) {
      // The person behind sudo, if there is one.
      const requestedBy = env.SUDO_USER || env.USER;
      return callService(place, "POST", ofProject(path), { ...body, requestedBy });
    },
  };
}

/**
 * The device and inode of a directory and of those around it, the innermost first. The service may run in a container, in
 * which a path leads elsewhere; these are the same everywhere on a machine.
 */
function directoriesAround(directory: string | null): string {
  if (directory === null) return "";
  try {
    const paths = [realpathSync(directory)];
    for (let at = paths[0] as string; at !== dirname(at) && paths.length < mostDirectories; at = dirname(at))
      paths.push(dirname(at));
    return paths
      .map((path) => statSync(path, { bigint: true }))
      .map(({ dev, ino }) => `${dev}.${ino}`)
      .join("-");
  } catch {
    return ""; // The directory was removed, or one around it may not be read: then it is in no project.
  }
}

/** They must fit the head of a request. */
const mostDirectories = 100;

/** The container and the systemd unit keep the state here; a person's shell knows of neither. */
const usualStatePath = "/var/lib/hotpush";

/**
 * The state directory of the service: from the environment or the `.env` of the working directory, as the service finds
 * it; else that of the server, if the directory is not in a checkout with a Hotpush of its own; else the usual ones.
 *
 * @param usual the directory to try last
 */
export function statePathOf(
  env: NodeJS.ProcessEnv,
  choice: ProjectChoice = {},
  usual = usualStatePath,
): string {
  const given = withDotenvHere(env);
  if (given.STATE_PATH) return given.STATE_PATH;
  const server = findServer(env);
  if (server !== null && isMeant(server, choice)) return server.state.run;
  const path = stateDirectoryOf(given);
  return existsSync(controlSocketPath(path)) || !existsSync(controlSocketPath(usual)) ? path : usual;
}

function isMeant(server: Server, { project, directory }: ProjectChoice): boolean {
  if (project !== undefined && findServerProject(server, project) !== null) return true;
  return !hasOwnHotpush(server, directory ?? ".");
}

/** An unreadable `.env` may belong to something else; then the environment alone counts. */
function withDotenvHere(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    return withDotenv(env, ".");
  } catch {
    return env;
  }
}
