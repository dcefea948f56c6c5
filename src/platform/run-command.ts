import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { attempt, type SystemUser } from "./files.ts";

/** A program with its arguments: never a shell string. */
export type Argv = readonly [string, ...string[]];

/** A command, its environment, and its limits. */
export interface Command {
  readonly argv: Argv;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** The user to run it as; null: the user of this process. */
  readonly user?: SystemUser | null | undefined;
  readonly input?: string | undefined;
  /** Without it there is no limit. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** A descriptor that the child keeps open, so that a lock on it lasts as long as the child. */
  readonly heldDescriptor?: number | undefined;
  /** Called with each line of both outputs as it comes. */
  readonly onLine?: ((line: string) => void) | undefined;
}

/** How a program ended. `lastLines` are the last of both its outputs; none if there is no such program. */
export type CommandEnding = (Exited | { readonly kind: "not_found" | "timed_out" | "aborted" }) & {
  readonly lastLines: readonly string[];
};

type Exited = { readonly kind: "exited"; readonly code: number; readonly output: string };

/** How many of the last lines are kept to explain a failure. */
const keptLines = 20;

const usualTimeoutMs = 10_000;

/**
 * Runs `command` in a session of its own, and waits for its end. On the time-out or the
 * signal's abort its whole process group is killed. `output` is what it wrote to its standard output.
 */
export async function runCommand(command: Command): Promise<CommandEnding> {
  const [program = "", ...args] = [...runAs(command.user ?? null), ...command.argv];
  const { heldDescriptor: held } = command;
  const child = spawn(program, args, {
    cwd: command.cwd,
    env: command.env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe", ...(held === undefined ? [] : [held])],
  });
  endFlood(child);
  const output: string[] = [];
  const lastLines: string[] = [];
  const keep = (line: string) => {
    command.onLine?.(line);
    lastLines.push(line);
    if (lastLines.length > keptLines) lastLines.shift();
  };
  const reading = Promise.all([
    readLines(child.stdout, (line) => {
      output.push(line);
      keep(line);
    }),
    readLines(child.stderr, keep),
  ]);
  child.stdin?.on("error", () => {}); // A program that does not read its input closes it: its exit code tells more.
  child.stdin?.end(command.input ?? "");
  const end = await endOf(child, command);
  if (typeof end === "string") return { kind: end, lastLines };
  await reading;
  return { kind: "exited", code: end, output: output.join("\n"), lastLines };
}

/**
 * Runs `argv` as `runCommand` does.
 *
 * @param options the time-out is 10 s by default
 * @returns what it wrote to its standard output, trimmed; null unless it exits with code 0
 */
export async function outputOf(
  argv: Argv,
  { timeoutMs = usualTimeoutMs, ...options }: Partial<Omit<Command, "argv">>,
): Promise<string | null> {
  const ending = await runCommand({ argv, timeoutMs, ...options });
  return hasSucceeded(ending) ? ending.output.trim() : null;
}

/** Whether a program exited with code 0. */
export function hasSucceeded(ending: CommandEnding): ending is CommandEnding & Exited {
  return ending.kind === "exited" && ending.code === 0;
}

/**
 * Runs `argv` for a person at a terminal: in the session of this process, without a time-out. Both outputs go to standard error
 * as they are, with their colours and progress.
 *
 * @param input what it reads, or the program whose output it reads; it never reads the terminal
 * @returns the exit code, or that of the program before it; null if a signal ended it or there is no such program
 */
export async function runInForeground(
  [program, ...args]: Argv,
  env: NodeJS.ProcessEnv,
  input: string | Argv = "",
): Promise<number | null> {
  const child = spawn(program, args, { env, stdio: ["pipe", process.stderr, process.stderr] });
  const code = exitCodeOf(child);
  child.stdin?.on("error", () => {}); // As above.
  if (typeof input === "string") {
    child.stdin?.end(input);
    return await code;
  }
  const [before, ...itsArgs] = input;
  const source = spawn(before, itsArgs, { env, stdio: ["ignore", "pipe", process.stderr] });
  const ended = exitCodeOf(source);
  // If one of both ends early, so does the other.
  await pipeline(source.stdout, child.stdin).catch(() => {});
  const own = await code;
  return own === 0 ? await ended : own;
}

/**
 * Runs `argv` in the place of this process: with its input, its outputs and its terminal. This process lives as long: SIGTERM is passed
 * on, and Ctrl-C reaches both.
 *
 * @param stdin `pipe`: in its place, an input in which nothing comes, and that ends with this process
 * @returns the exit code; null if a signal ended it or there is no such program
 */
export function runInPlace(
  [program, ...args]: Argv,
  env: NodeJS.ProcessEnv,
  stdin: "inherit" | "pipe" = "inherit",
): Promise<number | null> {
  const child = spawn(program, args, { env, stdio: [stdin, "inherit", "inherit"] });
  const stay = () => {};
  const stop = () => {
    child.kill();
  };
  process.on("SIGINT", stay).on("SIGTERM", stop);
  return exitCodeOf(child).finally(() => process.off("SIGINT", stay).off("SIGTERM", stop));
}

/** Starts `argv` and leaves it alone: it outlives this process. @returns whether there is such a program */
export function startAlone([program, ...args]: Argv, env: NodeJS.ProcessEnv): Promise<boolean> {
  const child = spawn(program, args, { env, stdio: "ignore", detached: true });
  child.unref();
  return new Promise((resolve) => {
    child.once("error", () => resolve(false)).once("spawn", () => resolve(true));
  });
}

function exitCodeOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once("error", () => resolve(null)).once("exit", resolve));
}

/** An exit code, or why there is none. */
async function endOf(
  child: ChildProcess,
  { timeoutMs, signal }: Command,
): Promise<number | "not_found" | "timed_out" | "aborted"> {
  // One that comes after the end is of no interest.
  child.on("error", () => {});
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const signals = [late, signal].filter((one) => one !== undefined);
  try {
    const [code] = await once(child, "close", { signal: AbortSignal.any(signals) });
    return code ?? 128;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return "not_found";
    if (code !== "ABORT_ERR") throw error;
    killGroup(child);
    return late?.aborted ? "timed_out" : "aborted";
  }
}

function killGroup(child: ChildProcess): void {
  const { pid } = child;
  // It may be gone already.
  if (pid !== undefined) attempt(() => process.kill(-pid, "SIGKILL"), null);
}

/** More than any program here has to say. */
const longestLineBytes = 16 * 1024 ** 2;
const mostBytes = 256 * 1024 ** 2;

/** Ends a program that fills the memory: that of another user may print without an end, as may a hook of theirs in git. */
function endFlood(child: ChildProcess): void {
  for (const stream of [child.stdout, child.stderr]) {
    let lineBytes = 0;
    let bytes = 0;
    stream?.on("data", (chunk: Buffer) => {
      const end = chunk.lastIndexOf("\n") + 1;
      lineBytes = chunk.length - end + (end === 0 ? lineBytes : 0);
      bytes += chunk.length;
      if (lineBytes <= longestLineBytes && bytes <= mostBytes) return;
      killGroup(child);
      // What has left the group could go on.
      stream.destroy();
    });
  }
}

async function readLines(stream: Readable | null, onLine: (line: string) => void): Promise<void> {
  if (!stream) return;
  const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
  stream.once("close", () => lines.close());
  for await (const line of lines) onLine(line);
}

/** True if `error` says that the machine is short of descriptors, memory or processes, which can resolve by itself. */
export function isShortage(error: unknown): boolean {
  return ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"].includes((error as NodeJS.ErrnoException).code ?? "");
}

/**
 * A prefix of a command line that runs it as `user`; null: as the user of this process. Node can set uid and gid of a child
 * too, but takes all other groups away from it.
 */
export function runAs(user: SystemUser | null): readonly string[] {
  if (user === null) return [];
  const { uid, gid, groups } = user;
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, `--groups=${groups.join(",")}`, "--"];
}

/** Exit code of flock if another process has the lock. Its default, 1, is also that of a fault. */
const busyExitCode = 75;

/**
 * Locks the open file `fd`, as flock(2) does, by util-linux's `flock` on the inherited descriptor: the lock belongs to
 * the open file, so it is ours as long as we, or a child that inherits it, have it open. Node has no call for that.
 *
 * @param options.waitS seconds to wait if another process has it; null: without a limit. Ends when `signal` is aborted
 * @returns whether the lock is ours now
 * @throws if flock fails, with its message, or is missing; the system's error if it cannot be run
 */
export async function flock(
  fd: number,
  { waitS, signal }: { readonly waitS: number | null; readonly signal?: AbortSignal | undefined },
): Promise<boolean> {
  const limits = waitS === null ? [] : ["--timeout", String(waitS)];
  const ending = await runCommand({
    argv: ["flock", "--exclusive", ...limits, "--conflict-exit-code", String(busyExitCode), "3"],
    heldDescriptor: fd,
    signal,
  });
  if (ending.kind === "not_found") throw new Error("there is no program flock");
  if (ending.kind !== "exited") return false;
  if (ending.code === 0 || ending.code === busyExitCode) return ending.code === 0;
  throw new Error(ending.lastLines.join("\n") || `flock ended with exit code ${ending.code}`);
}
