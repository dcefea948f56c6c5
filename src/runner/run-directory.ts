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
import { flock } from "#platform/file-lock";
import { isShortage } from "#platform/run-command";
import { findProcessesOf } from "./processes.ts";

/**
 * The files of a run, by which a service that did not start it finds it: `pid` and `exit`, written by supervisor.sh;
 * `output`, a named pipe that it makes; `lock`, which the script holds. Services of other versions rely on these names.
 */
export interface RunDirectory {
  readonly path: string;
  readonly pidPath: string;
  readonly exitPath: string;
  readonly outputPath: string;
  readonly lockPath: string;
  /** Holds the path of the repository: its project's settings may name another one before the script has ended. */
  readonly checkoutPath: string;
  /** Holds the commit whose signature was verified, if commits must be signed. */
  readonly verifiedPath: string;
}

export function runDirectory(statePath: string, deploymentId: number): RunDirectory {
  const path = join(statePath, "runs", String(deploymentId));
  return {
    path,
    pidPath: join(path, "pid"),
    exitPath: join(path, "exit"),
    outputPath: join(path, "output"),
    lockPath: join(path, "lock"),
    checkoutPath: join(path, "checkout"),
    verifiedPath: join(path, "verified"),
  };
}

/** Recreates the directory, empty. */
export function makeRunDirectory({ path }: RunDirectory): void {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

export function removeRunDirectory({ path }: RunDirectory): void {
  rmSync(path, { recursive: true, force: true });
}

export function noteCheckout({ checkoutPath }: RunDirectory, repoPath: string): void {
  writeFileSync(checkoutPath, repoPath, { mode: 0o600 });
}

/** The repository in which a run was started; null if nobody noted it. */
export function readCheckout({ checkoutPath }: RunDirectory): string | null {
  try {
    return readFileSync(checkoutPath, "utf8") || null;
  } catch {
    return null;
  }
}

/** Stores with the run what it may deploy, for the service that sees its end. */
export function noteVerified({ verifiedPath }: RunDirectory, commit: string): void {
  writeFileSync(verifiedPath, commit, { mode: 0o600 });
}

/** The commit whose signature was verified, or null if commits need none. @throws if it cannot be read */
export function readVerified({ verifiedPath }: RunDirectory): string | null {
  return existsSync(verifiedPath) ? readFileSync(verifiedPath, "utf8") : null;
}

/** The exit code that supervisor.sh recorded, or null if the script has not ended by itself. */
export function readExitCode({ exitPath }: RunDirectory): number | null {
  return readNumber(exitPath);
}

/** The process id of supervisor.sh, which is also the id of its process group. */
export function readPid({ pidPath }: RunDirectory): number | null {
  return readNumber(pidPath);
}

async function isLocked({ lockPath }: RunDirectory): Promise<boolean> {
  const fd = openIfThere(lockPath);
  if (fd === null) return false;
  try {
    return !(await flock(fd, { waitS: 0 }));
  } finally {
    closeSync(fd);
  }
}

/**
 * True while a script, or a process that it left behind, still runs: by its lock, or by the process table if the lock
 * cannot be tested.
 *
 * @throws only errors for which `isShortage` is true
 */
export async function isHeld(
  directory: RunDirectory,
  deploymentId: number,
  repoPath: string,
): Promise<boolean> {
  try {
    return await isLocked(directory);
  } catch (error) {
    if (isShortage(error)) throw error;
    return findProcessesOf(deploymentId, repoPath).length > 0;
  }
}

/** Waits until no process holds the lock of the run any more, or `signal` is aborted. */
export async function waitUntilUnlocked({ lockPath }: RunDirectory, signal: AbortSignal): Promise<void> {
  const fd = openIfThere(lockPath);
  if (fd === null) return;
  try {
    await flock(fd, { waitS: null, signal });
  } finally {
    closeSync(fd);
  }
}

/** The ids of the deployments that have a run directory. */
export function listRuns(statePath: string): readonly number[] {
  try {
    return readdirSync(join(statePath, "runs")).map(Number).filter(Number.isSafeInteger);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function readNumber(path: string): number | null {
  try {
    const text = readFileSync(path, "utf8").trim();
    return /^\d+$/.test(text) ? Number(text) : null;
  } catch {
    return null;
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
