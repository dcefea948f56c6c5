/** Commands that run again elsewhere: on the server by ssh, or in the container of `run`. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { NotRunningError } from "#calls/client";
import { operatorSocketPath, serverCommands } from "#config/server";
import { parseEnvFile } from "#platform/env-file";
import { outputOf, runInPlace } from "#platform/run-command";
import { isSshDestination, remoteCommandLine, sshOptions } from "#platform/ssh";
import { CommandError } from "#problems";
import { runContainer as container, findServer } from "#setup/server";
import { refuse } from "./command.ts";
import { directoriesAround, statePathOf } from "./service-access.ts";

/** Where `hotpush up` writes down which server was set up from this machine. */
function clientFileOf({ XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string {
  return join(XDG_CONFIG_HOME || join(HOME || "/", ".config"), "hotpush/client.env");
}

/** @param address as `ssh://root@203.0.113.5` */
export function saveServer(env: NodeJS.ProcessEnv, address: string): void {
  const file = clientFileOf(env);
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(file, `# Written by \`hotpush up\`.\nHOTPUSH_SERVER=${address}\n`, { mode: 0o600 });
}

/**
 * The server on which a command runs: that of HOTPUSH_SERVER; without one, and without a service on this machine, that of the last
 * `hotpush up`.
 *
 * @returns null: the command runs here
 * @throws CommandError if it is no address of ssh
 */
export function sshServerFor(env: NodeJS.ProcessEnv): string | null {
  const address = env.HOTPUSH_SERVER || savedServer(env);
  if (!address?.startsWith("ssh://")) return null;
  if (isSshDestination(address)) return address;
  throw new CommandError(
    `The server is "${address}", which is not an address such as ssh://root@203.0.113.5.`,
  );
}

function savedServer(env: NodeJS.ProcessEnv): string | undefined {
  const file = clientFileOf(env);
  if (!existsSync(file) || existsSync(operatorSocketPath(statePathOf(env)))) return undefined;
  return parseEnvFile(readFileSync(file, "utf8")).HOTPUSH_SERVER;
}

const isTerminal = () => [process.stdin, process.stdout, process.stderr].every(({ isTTY }) => isTTY);

/** Root runs it there, or sudo. */
const script = 'sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"; exec $sudo hotpush "$@"';

/** Runs a command on the server, with this terminal. @returns its exit code; 255 if ssh does not get there, 130 if it was ended */
export async function runOverSsh(
  address: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const line = remoteCommandLine(["sh", "-c", script, "sh", ...words]);
  const tty = isTerminal() ? "-t" : "-T";
  return (await runInPlace(["ssh", ...sshOptions, tty, "--", address, line], env)) ?? 130;
}

/** Variables that decide how the command prints, and in whose name it asks. */
const passedOn = ["TERM", "COLORTERM", "NO_COLOR", "USER", "SUDO_USER"];

/**
 * Runs a command again in the container of `run`, if that is the service that it could not reach and this user may use
 * Docker: only root may use the socket of `run`. If there is no such way, the reason is printed on standard error.
 *
 * @returns the exit code of the command
 */
export async function runInServer(
  error: NotRunningError,
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const server = findServer(env);
  if (server?.state.run !== error.statePath) return refuse(error.message);
  if (!error.isForbidden)
    return refuse(`${error.message.replace(/\. .*$/s, "")}. Start it: ${serverCommands(server.files).start}`);
  const command = ["hotpush", ...argv];
  const inspect = ["docker", "inspect", "--format", "{{.State.Running}}", container] as const;
  if ((await outputOf(inspect, { env })) !== "true") {
    const line = command.join(" ");
    return refuse(
      `Only root may use the Hotpush of this server. Run: sudo ${line}. Or, as a user who may use Docker: docker exec -it ${container} ${line}`,
    );
  }
  const variables = [
    ...passedOn.flatMap((name) => (env[name] ? [`${name}=${env[name]}`] : [])),
    `TZ=${Intl.DateTimeFormat().resolvedOptions().timeZone}`,
    // A path of this machine leads elsewhere in the container.
    `HOTPUSH_WITHIN=${directoriesAround(".")}`,
  ];
  const options = variables.flatMap((variable) => ["--env", variable]);
  // `docker exec` passes no signal on. Without a terminal, the end of an input in which nothing comes has the command leave.
  const tty = isTerminal() ? ["--tty"] : [];
  const exec = ["docker", "exec", "--interactive", ...tty, ...options, container, ...command] as const;
  return (await runInPlace(exec, env, isTerminal() ? "inherit" : "pipe")) ?? 1;
}
