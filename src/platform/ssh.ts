import { join } from "node:path";
import { CommandError } from "#problems";
import { makeScratch } from "./files.ts";
import { type Argv, outputOf, runInForeground, runInPlace } from "./run-command.ts";
import { printable } from "./terminal.ts";

/** A server that the system's own ssh has signed in to. Every command goes over this one connection. */
export interface SshConnection {
  /** Runs a command with `input`, or the output of a program of this machine; its outputs go to standard error. @returns the exit code; 255: the connection was lost */
  readonly run: (argv: Argv, input?: string | Argv) => Promise<number | null>;
  /**
   * @returns the standard output of a command, trimmed; null unless it exits with code 0
   * @throws CommandError if the server's shell has not run it
   */
  readonly ask: (argv: Argv) => Promise<string | null>;
  readonly close: () => Promise<void>;
}

/** What ssh itself ends with; a program on the server may do so too, and then the connection is asked. */
export const sshFailed = 255;

const destinationPattern = /^(?:ssh:\/\/)?(?:[\w.+][\w.+-]*@)?\w[\w.-]*(?::\d{1,5})?$/i;

/** Whether ssh may be given this as a destination: `root@203.0.113.5`, a name of its settings, or `ssh://ada@host:2222`. */
export function isSshDestination(text: string): boolean {
  return destinationPattern.test(text) && (text.startsWith("ssh://") || !/:\d+$/.test(text));
}

/** A command line that the shell of the server takes apart into exactly these words. */
export function remoteCommandLine(argv: Argv): string {
  return argv.map(quote).join(" ");
}

/** `word` as a POSIX shell takes it for one word. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** How ssh would reach a destination, by its own account (`ssh -G`). @returns the values of a setting */
export async function readSshSettings(
  [program, ...options]: Argv,
  destination: string,
  from: Parameters<typeof outputOf>[1],
): Promise<(name: string) => readonly string[]> {
  const text = (await outputOf([program, ...options, "-G", "--", destination], from)) ?? "";
  return (name) => Array.from(text.matchAll(new RegExp(`^${name} (.*)$`, "gm")), ([, value = ""]) => value);
}

const askTimeoutMs = 120_000;
/** The server never gets the keys of this machine's agent; a connection that is dead is noticed within a minute. */
export const sshOptions = [
  ...["-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"],
  ...["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"],
];
/** Begins an answer: a `.bashrc` on the server may print lines before it. */
const answerMark = "hotpush-answer:";
const always = ["-C", "-o", "RequestTTY=no", ...sshOptions];

/**
 * Signs in with the settings, keys, agent and known hosts of the person. ssh asks at their terminal what it has to ask, also whether
 * the key of a new server is right.
 *
 * @returns null if that failed; ssh has said why
 */
export async function openSsh(destination: string, env: NodeJS.ProcessEnv): Promise<SshConnection | null> {
  using onFailure = new DisposableStack();
  const path = join(onFailure.use(makeScratch()).path, "ssh");
  // It ends by itself a minute after its last use, should this process be killed.
  const keep = ["-M", "-S", path, "-o", "ControlPersist=60", "-f", "-N"];
  const code = await runInPlace(["ssh", ...always, ...keep, "--", destination], env);
  if (code !== 0) return null;
  const scratch = onFailure.move();
  // Without the connection there is no other one: nobody would be there to answer its questions.
  const only = ["-o", "ControlMaster=no", "-o", "ProxyCommand=false", "-o", "BatchMode=yes"];
  const shared = [...always, "-S", path, ...only, "--", destination];
  const over = (argv: Argv): Argv => ["ssh", ...shared, remoteCommandLine(argv)];
  return {
    run: (argv, input) => runInForeground(over(argv), env, input),
    ask: async (argv) => {
      const marked = over(["sh", "-c", 'printf "\\n%s\\n" "$0"; exec "$@"', answerMark, ...argv]);
      return answerIn(await outputOf(marked, { env, timeoutMs: askTimeoutMs }), destination);
    },
    async close() {
      await outputOf(["ssh", "-S", path, "-O", "exit", "--", destination], { env });
      scratch.dispose();
    },
  };
}

function answerIn(output: string | null, destination: string): string | null {
  if (output === null) return null;
  const [before = "", ...answer] = output.split(new RegExp(`^${answerMark}$`, "m"));
  if (answer.length > 0) return answer.join(answerMark).trim();
  throw new CommandError(
    `The shell of ${destination} does not run commands. It says: ${printable(before)}. Check it (.bashrc, .profile, ForceCommand): ssh ${destination} echo hello`,
  );
}
