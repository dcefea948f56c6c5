import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { operatorSocketPath } from "#config/state-path";
import { runInPlace } from "#platform/run-command";
import { isSshDestination, remoteCommandLine } from "#platform/ssh";
import { CommandError } from "#problems";
import { statePathOf } from "./service-access.ts";

/** The commands that run on the server themselves if HOTPUSH_SERVER is an address of ssh. */
const overSsh = [
  ...["status", "history", "logs", "projects", "deploy", "cancel", "pause", "resume", "rollback"],
  ...["open", "doctor"],
];

/** Where `hotpush up` writes down which server was set up from this machine. */
export function clientFileOf({ XDG_CONFIG_HOME, HOME }: NodeJS.ProcessEnv): string {
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
export function sshServerFor(command: string, env: NodeJS.ProcessEnv): string | null {
  if (!overSsh.includes(command)) return null;
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
  return parseEnv(readFileSync(file, "utf8")).HOTPUSH_SERVER;
}

/** Root runs it there, or sudo. */
const script = 'sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"; exec $sudo hotpush "$@"';

/** Runs a command on the server, with this terminal. @returns its exit code; 255 if ssh does not get there */
export async function runOverSsh(
  address: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const isTerminal = [process.stdin, process.stdout].every(({ isTTY }) => isTTY);
  const line = remoteCommandLine(["sh", "-c", script, "sh", ...words]);
  return (await runInPlace(["ssh", "-a", isTerminal ? "-t" : "-T", "--", address, line], env)) ?? 1;
}
