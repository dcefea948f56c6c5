import { existsSync, realpathSync, statSync } from "node:fs";
import type { Command } from "commander";
import { type Asked, callRun, findRemoteServer, type ServicePlace } from "#calls/client";
import type { CallName, GivenBy } from "#calls/table";
import { operatorSocketPath, stateDirectoryOf } from "#config/server";
import { withTrustedDotenv } from "#platform/env-file";
import { attempt } from "#platform/files";
import { openTerminal, type Terminal } from "#platform/terminal";
import { findServer } from "#setup/server";
import type { CommandContext } from "./command.ts";

/** What a command that calls the service works with. */
export interface ServiceAccess {
  readonly env: NodeJS.ProcessEnv;
  readonly place: ServicePlace;
  /** On standard output. */
  readonly terminal: Terminal;
  /** The project that this command is about, or what the service can find it by. */
  readonly whose: { readonly project?: string; readonly within?: string };
  /** Makes a call in the name of the person who runs this command, about that project if it is about one. */
  readonly call: <Name extends CallName>(name: Name, asked: Asked<Name>) => Promise<GivenBy<Name>>;
}

/** The options of each command that calls the service. */
export interface ProjectChoice {
  readonly project?: string | undefined;
  /** The project is that of this directory, by default the working directory. null: it must be named. */
  readonly directory?: string | null;
}

/** Its `call` throws as `callRun`. */
export function accessService(
  env: NodeJS.ProcessEnv,
  { project, directory = "." }: ProjectChoice,
): ServiceAccess {
  const remote = findRemoteServer(env);
  const place = remote ?? statePathOf(env);
  const within = directory === null ? "" : (env.HOTPUSH_WITHIN ?? directoriesAround(directory));
  // A directory of this machine means nothing on another one.
  const whose = project !== undefined ? { project } : remote === null && within !== "" ? { within } : {};
  // The person behind sudo, if there is one.
  const requestedBy = env.SUDO_USER || env.USER;
  return {
    env,
    place,
    whose,
    terminal: openTerminal(process.stdout, env),
    call: (name, asked) => callRun(place, name, { ...whose, ...asked }, { requestedBy }),
  };
}

/** What a command got, and how it is shown to a person. */
export interface Told {
  readonly answer: object;
  readonly lines: (terminal: Terminal) => readonly string[];
  /** Whether the exit code is 0. */
  readonly isGood?: boolean;
}

/** Lets a command ask the service about a project, and print what it got: with `--json` as one JSON object. */
export function answering<Options extends object>(
  command: Command,
  { env, finish }: CommandContext,
  ask: (service: ServiceAccess, options: Options) => Promise<Told>,
): Command {
  return command
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async (options: Options & { readonly json?: boolean }) => {
      const service = accessService(env, options as ProjectChoice);
      const { answer, lines, isGood = true } = await ask(service, options);
      service.terminal.print(...(options.json ? [JSON.stringify(answer)] : lines(service.terminal)));
      finish(isGood ? 0 : 1);
    });
}

/**
 * The device and inode of a directory and of those around it, the innermost first. The service may run in a container, in
 * which a path leads elsewhere; these are the same everywhere on a machine.
 */
export function directoriesAround(directory: string): string {
  try {
    const names = realpathSync(directory).split("/").slice(1);
    const paths = names.map((_, index) => `/${names.slice(0, names.length - index).join("/")}`);
    // They must fit the head of a request.
    return [...paths.slice(0, 100), "/"]
      .map((path) => statSync(path, { bigint: true }))
      .map(({ dev, ino }) => `${dev}.${ino}`)
      .join("-");
  } catch {
    return ""; // The directory was removed, or one around it may not be read: then it is in no project.
  }
}

/** The container and the systemd unit keep the state here; a person's shell knows of neither. */
const usualStatePath = "/var/lib/hotpush";

/**
 * The state directory of the service: from the environment; else that of the server; else from the `.env` of the working
 * directory, as the service finds it; else the usual ones. Root believes no `.env` about which another user decides.
 *
 * @param usual the directory to try last
 */
export function statePathOf(env: NodeJS.ProcessEnv, usual = usualStatePath): string {
  if (env.STATE_PATH) return env.STATE_PATH;
  const server = findServer(env);
  if (server !== null) return server.state.run;
  // An unreadable `.env` may belong to something else; then the environment alone counts.
  const given = attempt(() => withTrustedDotenv(env, "."), env);
  if (given.STATE_PATH) return given.STATE_PATH;
  const path = stateDirectoryOf(given);
  return existsSync(operatorSocketPath(path)) || !existsSync(operatorSocketPath(usual)) ? path : usual;
}
