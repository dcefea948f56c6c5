import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { RunDirectory } from "./run-directory.ts";

const supervisorPath = fileURLToPath(new URL("supervisor.sh", import.meta.url));

/** How supervisor.sh ended, if that is known. */
export interface SupervisorExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A supervisor.sh that holds the lock of its run and has not started the script yet. */
export interface Supervisor {
  readonly pid: number;
  readonly exited: Promise<SupervisorExit>;
  readonly startScript: () => void;
  /** Ends it without starting the script. */
  readonly dismiss: () => Promise<void>;
}

export interface SupervisorOptions {
  readonly directory: RunDirectory;
  /** A descriptor of the run's lock file, open in this process. */
  readonly lockFd: number;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly environment: Record<string, string>;
}

/**
 * Starts supervisor.sh in a process group of its own. It takes the lock before the script starts, so a service that dies
 * never leaves a script without its lock.
 *
 * @throws Error with a `code` if the machine cannot do it now
 */
export async function startSupervisor(options: SupervisorOptions): Promise<Supervisor> {
  const { directory, lockFd, command, cwd, environment } = options;
  const child = spawn(supervisorPath, [directory.path, ...command], {
    cwd,
    env: environment,
    detached: true,
    stdio: ["pipe", "pipe", "ignore", lockFd],
  }) as ChildProcessByStdio<Writable, Readable, null>;
  const exited = exitOf(child);
  const { pid } = await hasSpawned(child);
  // It may have ended by itself.
  child.stdin.on("error", () => {});
  await isReady(child.stdout, exited);
  return {
    pid,
    exited,
    startScript: () => child.stdin.end("go\n"),
    async dismiss() {
      child.stdin.destroy();
      await exited;
    },
  };
}

async function isReady(output: AsyncIterable<Buffer>, exited: Promise<SupervisorExit>): Promise<void> {
  let said = "";
  for await (const chunk of output) {
    said += chunk.toString();
    if (said.endsWith("ready\n")) return;
  }
  const { code, signal } = await exited;
  const reason = said.trim().split("\n")[0] || `${signal ?? `exit code ${code}`}`;
  const text = `its lock or the pipe for its output could not be set up: ${reason}`;
  throw Object.assign(new Error(text), { code: "not_ready" });
}

function hasSpawned(child: ChildProcess): Promise<{ readonly pid: number }> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => resolve({ pid: child.pid ?? 0 }));
  });
}

function exitOf(child: ChildProcess): Promise<SupervisorExit> {
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
}
