import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { flock, isShortage } from "#platform/run-command";

const supervisorPath = fileURLToPath(new URL("supervisor.sh", import.meta.url));

/** How supervisor.sh ended, if that is known. */
export interface SupervisorExit {
  readonly code: number | null;
  readonly signal: string | null;
}

/**
 * Starts supervisor.sh in a process group of its own. It takes the lock before the script starts, so a service that dies
 * never leaves a script without its lock.
 *
 * @param directory of the run
 * @returns a supervisor that holds the lock and has not started the script yet; `dismiss` ends it without that
 * @throws Error with a `code` if the machine cannot do it now
 */
export async function startSupervisor(
  directory: string,
  command: readonly string[],
  options: { readonly cwd: string; readonly env: Record<string, string> },
) {
  const lockPath = join(directory, "lock");
  writeFileSync(lockPath, "", { mode: 0o600 });
  // The script inherits it, and could fill the disk through a descriptor that writes.
  const lockFd = openSync(lockPath, "r");
  try {
    const child = spawn(supervisorPath, [directory, ...command], {
      ...options,
      detached: true,
      stdio: ["pipe", "pipe", "ignore", lockFd],
    }) as ChildProcessByStdio<Writable, Readable, null>;
    const exited = new Promise<SupervisorExit>((resolve) =>
      child.once("exit", (code, signal) => resolve({ code, signal })),
    );
    await once(child, "spawn");
    // It may have ended by itself.
    child.stdin.on("error", () => {});
    await isReady(child.stdout, exited);
    return {
      pid: child.pid ?? 0,
      exited,
      startScript: () => child.stdin.end("go\n"),
      async dismiss() {
        child.stdin.destroy();
        await exited;
      },
    };
  } finally {
    closeSync(lockFd);
  }
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

/**
 * The directory of a run, by whose files a service that did not start it finds it: `pid` and `exit`, written by supervisor.sh;
 * `output`, a named pipe that it makes; `lock`, which the script holds; `verified`, the commit whose signature was verified, if
 * commits must be signed. Services of other versions rely on these names.
 */
export function runDirectory(statePath: string, deploymentId: number): string {
  return join(statePath, "runs", String(deploymentId));
}

/**
 * Recreates the directory, empty.
 *
 * @param verified the commit whose signature was verified, for the service that sees the end; null: commits need none
 */
export function makeRunDirectory(directory: string, verified: string | null): void {
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (verified !== null) writeFileSync(join(directory, "verified"), verified, { mode: 0o600 });
}

/** The commit whose signature was verified, or null if commits need none. @throws if it cannot be read */
export function readVerified(directory: string): string | null {
  const path = join(directory, "verified");
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}

/** The exit code that supervisor.sh recorded, or null if the script has not ended by itself. */
export function readExitCode(directory: string): number | null {
  const text = read(join(directory, "exit")).trim();
  return /^\d+$/.test(text) ? Number(text) : null;
}

/** Another run than `ownId` whose script still runs, or null; the files of ended runs are removed. */
export async function findSurvivor(
  statePath: string,
  ownId: number,
  repoPath: string,
): Promise<number | null> {
  const path = join(statePath, "runs");
  const ids = existsSync(path) ? readdirSync(path).map(Number).filter(Number.isSafeInteger) : [];
  for (const id of ids) {
    const directory = runDirectory(statePath, id);
    // A background process of an ended script may hold its lock for ever.
    const hasEnded = id === ownId || readExitCode(directory) !== null;
    if (!hasEnded && (await isHeld(directory, id, repoPath))) return id;
    rmSync(directory, { recursive: true, force: true });
  }
  return null;
}

/**
 * True while a script, or a process that it left behind, still runs: by its lock, or by the process table if the lock
 * cannot be tested.
 *
 * @throws only errors for which `isShortage` is true
 */
export async function isHeld(directory: string, id: number, repoPath: string): Promise<boolean> {
  const lockPath = join(directory, "lock");
  let fd: number | null = null;
  try {
    fd = openSync(lockPath, constants.O_RDONLY);
    return !(await flock(fd, { waitS: 0 }));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" && !existsSync(lockPath)) return false;
    if (isShortage(error)) throw error;
    return groupsOf(id, repoPath).length > 0;
  } finally {
    if (fd !== null) closeSync(fd);
  }
}

/**
 * The process group of a run, also if its supervisor, whose process id it has, was killed; null if none is left. Process ids
 * are reused, and those of another container mean nothing here.
 */
export function groupOf(directory: string, id: number, repoPath: string): number | null {
  const supervisor = read(join(directory, "pid")).trim();
  return groupsOf(id, repoPath).find((group) => String(group) === supervisor) ?? null;
}

/**
 * The process group of each process of a run, found by the marks in its environment, unless it has emptied that. A zombie has
 * none.
 */
export function groupsOf(deploymentId: number, repoPath: string): readonly number[] {
  const marks = [`DEPLOY_ID=${deploymentId}`, `REPO_PATH=${repoPath}`];
  const isMarked = (pid: number) => {
    const entries = read(`/proc/${pid}/environ`).split("\0");
    return marks.every((mark) => entries.includes(mark));
  };
  const pids = readdirSync("/proc").map(Number);
  return pids.filter((pid) => pid > 0 && pid !== process.pid && isMarked(pid)).map(groupOfProcess);
}

/** The third field of `stat` after the name, which may contain blanks and brackets. */
function groupOfProcess(pid: number): number {
  const stat = read(`/proc/${pid}/stat`);
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
}

/** The text of a file; empty if there is none. Other users' processes cannot be read, and any process may be gone by now. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * Signals `group`, a process group by the id of its leader; false if no process of it is left. The rest of a group may
 * belong to another user, for example by sudo, so that this process may not signal it.
 */
export function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ESRCH") return false;
    if (code === "EPERM") return true;
    throw error;
  }
}

const lookIntervalMs = 50;
/** The longest wait for a killed process to be gone: a zombie that nobody reaps never is. */
const goneMs = 2_000;

/**
 * Ends a process group: sends SIGTERM, waits up to `graceMs`, then sends SIGKILL. It ends the whole group, even if the
 * script itself has ended and only its children are left.
 *
 * @param group null: there is none
 * @returns whether SIGKILL was needed; resolves when no process of the group is left
 */
export async function terminateGroup(group: number | null, graceMs: number): Promise<boolean> {
  if (group === null) return false;
  const isGoneIn = async (mostMs: number) => {
    const startMs = performance.now();
    while (signalGroup(group, 0)) {
      if (performance.now() - startMs >= mostMs) return false;
      await sleep(lookIntervalMs);
    }
    return true;
  };
  signalGroup(group, "SIGTERM");
  if (await isGoneIn(graceMs)) return false;
  signalGroup(group, "SIGKILL");
  await isGoneIn(goneMs);
  return true;
}
