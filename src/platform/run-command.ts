import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
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
  /** Called with each line of both outputs as it comes; a long line is cut to `maxLineChars`. */
  readonly onLine?: ((line: string) => void) | undefined;
  /** The most bytes of standard output that the caller reads (default: 1 MiB). With 0, the output is drained and not kept. */
  readonly maxOutputBytes?: number | undefined;
}

/**
 * How a program ended. `lastLines` are the last lines of both outputs; empty if there is no such program. A program that wrote more
 * than `maxOutputBytes` was killed (`too_long`), and `output` is its beginning.
 */
export type CommandEnding = (
  | Exited
  | { readonly kind: "too_long"; readonly output: string }
  | { readonly kind: "not_found" | "timed_out" | "aborted" }
) & {
  readonly lastLines: readonly string[];
};

type Exited = { readonly kind: "exited"; readonly code: number; readonly output: string };

/** How many of the last lines are kept to explain a failure. */
const keptLines = 20;

const usualTimeoutMs = 10_000;
export const defaultMaxOutputBytes = 1024 ** 2;
/** The longest line that is passed on: another user's program may print without a line break. */
export const maxLineChars = 64 * 1024;

/**
 * Runs `command` in a session of its own, and waits until it exits. On the time-out, the signal's abort, or too much output, its
 * whole process group is killed. `output` is what it wrote to standard output, with plain line breaks and without the last one.
 */
export async function runCommand(command: Command): Promise<CommandEnding> {
  const [program = "", ...args] = [...runAs(command.user ?? null), ...command.argv];
  const { heldDescriptor: held, maxOutputBytes = defaultMaxOutputBytes } = command;
  const child = spawn(program, args, {
    cwd: command.cwd,
    env: command.env,
    detached: true,
    stdio: ["pipe", "pipe", "pipe", ...(held === undefined ? [] : [held])],
  });
  const output: string[] = [];
  let outputBytes = 0;
  const lastLines: string[] = [];
  const keep = (line: string) => {
    command.onLine?.(line);
    lastLines.push(line);
    if (lastLines.length > keptLines) lastLines.shift();
  };
  eachLine(child.stdout, keep);
  eachLine(child.stderr, keep);
  child.stdout?.on("data", (text: string) => {
    if (maxOutputBytes === 0 || outputBytes > maxOutputBytes) return;
    output.push(text);
    outputBytes += Buffer.byteLength(text);
    if (outputBytes <= maxOutputBytes) return;
    killGroup(child);
    // Whatever has left the group could continue.
    child.stdout?.destroy();
  });
  child.stdin?.on("error", () => {}); // A program that does not read its input closes it: its exit code tells more.
  child.stdin?.end(command.input ?? "");
  const end = await endOf(child, command);
  const text = () => output.join("").replaceAll(/\r\n?/g, "\n").replace(/\n$/, "");
  if (outputBytes > maxOutputBytes && maxOutputBytes > 0)
    return { kind: "too_long", output: text(), lastLines };
  if (typeof end === "string") return { kind: end, lastLines };
  return { kind: "exited", code: end, output: text(), lastLines };
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

/** Calls `onLine` with each line of `stream` as it comes, cut to `maxLineChars`. All have come when the child is closed. */
function eachLine(stream: Readable | null, onLine: (line: string) => void): void {
  let line: string | null = null;
  let endedInReturn = false;
  stream?.setEncoding("utf8").on("data", (text: string) => {
    const [first = "", ...rest] = (endedInReturn ? text.replace(/^\n/, "") : text).split(/\r\n|\n|\r/);
    endedInReturn = text.endsWith("\r");
    line = ((line ?? "") + first).slice(0, maxLineChars);
    for (const next of rest) {
      onLine(line);
      line = next.slice(0, maxLineChars);
    }
  });
  stream?.once("close", () => {
    if (line) onLine(line);
  });
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
