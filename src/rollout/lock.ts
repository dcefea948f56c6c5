import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname } from "node:path";
import { FlockFailure, flock } from "../platform/file-lock.ts";
import { ProblemError } from "../problems.ts";
import type { RolloutRequest } from "./context.ts";
import { stateFault } from "./state.ts";

/** The lock of a project's roll-outs, held by this process. */
export interface RolloutLock {
  /**
   * For children that change containers: the lock then lasts until they have ended, even if this process is killed.
   */
  readonly descriptor: number;
  readonly release: () => Promise<void>;
}

export interface LockOptions {
  /** Called with the id of the process that holds the lock, before waiting for it. */
  readonly onWait?: (holder: string) => void;
  /** Aborted to stop waiting. */
  readonly signal?: AbortSignal;
}

/**
 * Takes the lock at `path`, and waits up to `waitS` seconds for another roll-out. The kernel releases it with the
 * last process that holds it, so it is never stale.
 *
 * @throws ProblemError `rollout_locked` if the other roll-out does not end in time, `rollout_interrupted` if `signal`
 * is aborted first, `state_unusable` or `tool_missing` if locking is not possible
 */
export async function lockRollout(
  path: string,
  waitS: number,
  options: LockOptions = {},
): Promise<RolloutLock> {
  try {
    return await openAndLock(path, waitS, options);
  } catch (error) {
    throw stateFault(path, error, "Nothing was changed.");
  }
}

async function openAndLock(path: string, waitS: number, options: LockOptions): Promise<RolloutLock> {
  await mkdir(dirname(path), { recursive: true });
  const file = await open(path, "a+");
  try {
    if ((await tryLock(file.fd, { path, waitS: 0 })) !== "locked") {
      await waitForLock(file, path, waitS, options);
    }
    await file.truncate(0);
    await file.write(`${process.pid}\n`);
    return { descriptor: file.fd, release: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function waitForLock(
  file: FileHandle,
  path: string,
  waitS: number,
  { onWait, signal }: LockOptions,
): Promise<void> {
  const holder = await readHolder(file);
  if (waitS > 0) onWait?.(holder);
  const result = waitS > 0 ? await tryLock(file.fd, { path, waitS, signal }) : "busy";
  if (result === "interrupted") throw interrupted(holder);
  if (result === "busy") throw busy(path, waitS, holder);
}

function interrupted(holder: string): ProblemError {
  const detail = `The roll-out was asked to stop while it waited for another one (process ${holder}). Nothing was changed.`;
  return new ProblemError({ code: "rollout_interrupted", detail });
}

function busy(path: string, waitS: number, holder: string): ProblemError {
  const detail = `Another roll-out of this project (process ${holder}) did not end within ${waitS} s. It holds ${path}. Nothing was changed.`;
  return new ProblemError({ code: "rollout_locked", detail });
}

async function readHolder(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(32), 0, 32, 0);
  return buffer.toString("utf8", 0, bytesRead).trim() || "unknown";
}

/** `interrupted`: flock, or its caller, was asked to stop. */
type LockAttempt = "locked" | "busy" | "interrupted";

/**
 * Tries to lock the open file `descriptor`; waits up to `waitS` seconds for another process, or until `signal` is
 * aborted.
 *
 * @param options.path of the file, for the error message
 * @throws ProblemError `tool_missing` without flock, `state_unusable` if it fails
 */
async function tryLock(
  descriptor: number,
  options: { readonly path: string; readonly waitS: number; readonly signal?: AbortSignal | undefined },
): Promise<LockAttempt> {
  const { path, waitS, signal } = options;
  try {
    if (await flock(descriptor, { waitS, signal })) return "locked";
    return signal?.aborted ? "interrupted" : "busy";
  } catch (error) {
    if (wasEndedWithUs(error)) return "interrupted";
    throw lockFault(path, error as NodeJS.ErrnoException);
  }
}

/** flock is in our process group: a signal to the group may end it before we handle our own. */
function wasEndedWithUs(error: unknown): boolean {
  return error instanceof FlockFailure && (error.killedBy === "SIGTERM" || error.killedBy === "SIGINT");
}

function lockFault(path: string, error: NodeJS.ErrnoException): ProblemError {
  if (error.code === "ENOENT") {
    const detail = "The program flock could not be started. Install util-linux. Nothing was changed.";
    return new ProblemError({ code: "tool_missing", detail }, error);
  }
  const detail = `${path} could not be locked (${error.message}). Nothing was changed. Roll out again; if that fails in the same way, set STATE_PATH to a directory whose file system has locks.`;
  return new ProblemError({ code: "state_unusable", detail }, error);
}

/**
 * Takes the project's lock. If another roll-out holds it, reports that, and for how long it waited.
 *
 * @throws ProblemError as `lockRollout` does
 */
export async function lockInTurn({
  lockPath,
  lockWaitS,
  report,
  signal,
}: Pick<RolloutRequest, "lockPath" | "lockWaitS" | "report" | "signal">): Promise<RolloutLock> {
  let waitingSinceMs: number | null = null;
  const onWait = (holder: string) => {
    waitingSinceMs = performance.now();
    const text = `waiting for another roll-out of this project (process ${holder}), ${lockWaitS} s at most`;
    report({ event: "note", service: null, text });
  };
  const lock = await lockRollout(lockPath, lockWaitS, { onWait, signal });
  if (waitingSinceMs !== null) {
    const durationMs = Math.round(performance.now() - waitingSinceMs);
    report({ event: "step", service: null, step: "lock", durationMs, detail: "the other roll-out is done" });
  }
  return lock;
}
