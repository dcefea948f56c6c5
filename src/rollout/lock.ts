import { createHash } from "node:crypto";
import { chown, mkdir, open } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { flock } from "#platform/file-lock";
import { inheritedOwner, nearestExisting } from "#platform/files";
import { ProblemError } from "#problems";
import { note, type Report, timed } from "./report.ts";

/** The lock of a project's roll-outs, held by this process. */
export interface RolloutLock {
  /**
   * For children that change containers: the lock then lasts until they have ended, even if this process is killed.
   */
  readonly descriptor: number;
  readonly release: () => Promise<void>;
}

export interface LockOptions {
  /** Is given what the roll-out waits for, and for how long it waited. */
  readonly report?: Report;
  /** Aborted to stop waiting. */
  readonly signal?: AbortSignal;
}

/**
 * Takes the lock at `path`, and waits up to `waitS` seconds for another roll-out. The kernel releases it with the
 * last process that holds it, so it is never stale.
 *
 * @throws ProblemError `rollout_locked` if the other roll-out does not end in time, `rollout_interrupted` if `signal`
 * is aborted first, `state_unusable` if locking is not possible
 */
export async function lockRollout(
  path: string,
  waitS: number,
  options: LockOptions = {},
): Promise<RolloutLock> {
  try {
    const owner = await makeStateDirectory(dirname(path));
    const file = await open(path, "a+");
    try {
      if (owner !== null) await file.chown(owner.uid, owner.gid);
      await waitForLock(file.fd, path, waitS, options);
      return { descriptor: file.fd, release: () => file.close() };
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    throw stateFault(path, error, "Nothing was changed.");
  }
}

/**
 * Waits up to `waitS` seconds for another process that holds the lock.
 *
 * @throws ProblemError `rollout_locked`, `rollout_interrupted`, `state_unusable` if it fails
 */
async function waitForLock(
  descriptor: number,
  path: string,
  waitS: number,
  { report = () => {}, signal }: LockOptions,
): Promise<void> {
  const tryLock = (seconds: number, stopping?: AbortSignal) =>
    flock(descriptor, { waitS: seconds, signal: stopping }).catch((error: Error) => {
      const detail = `${path} could not be locked (${error.message}). Nothing was changed. Roll out again; if that fails in the same way, set STATE_PATH to a directory whose file system has locks.`;
      throw new ProblemError({ code: "state_unusable", detail }, error);
    });
  if (await tryLock(0)) return;
  const wait = async () => {
    if (await tryLock(waitS, signal)) return;
    const detail = signal?.aborted
      ? "The roll-out was asked to stop while it waited for another one. Nothing was changed."
      : `Another roll-out of this project did not end within ${waitS} s. It holds ${path}. Nothing was changed.`;
    throw new ProblemError({ code: signal?.aborted ? "rollout_interrupted" : "rollout_locked", detail });
  };
  if (waitS === 0) return wait();
  note({ report }, `waiting for another roll-out of this project, ${waitS} s at most`);
  await timed({ report }, "lock", wait, "the other roll-out is done");
}

/** The files in which roll-outs keep what Docker does not: the lock, and the good versions. */
export interface RolloutState {
  readonly lockPath: string;
  readonly versionsPath: string;
  /** The state directory itself. */
  readonly statePath: string;
}

/** The files for the project in `projectDirectory`. Two directories of the same name do not share them. */
export function rolloutState(stateDirectory: string, projectDirectory: string): RolloutState {
  const path = resolve(projectDirectory);
  const name = `${basename(path)}-${createHash("sha256").update(path).digest("hex").slice(0, 8)}`;
  const directory = join(stateDirectory, "rollout");
  const lockPath = join(directory, `${name}.lock`);
  const versionsPath = join(directory, `${name}.json`);
  return { lockPath, versionsPath, statePath: stateDirectory };
}

/**
 * Makes a directory of state files. As root, it belongs to the owner of the directory above it: scripts of a project
 * on the server run as the owner of its checkout, and must be able to use what a roll-out by hand has made.
 *
 * @returns the owner to give its files; null: as they are
 */
export async function makeStateDirectory(path: string) {
  const owner = inheritedOwner(nearestExisting(path));
  const made = await mkdir(path, { recursive: true });
  if (made !== undefined && owner !== null) await chown(path, owner.uid, owner.gid);
  return inheritedOwner(path);
}

/**
 * The error to throw if working with the state file at `path` failed with `error`: ProblemError `state_unusable` if
 * the system refused (no permission, no directory, no space), else `error` itself.
 *
 * @param consequence a sentence on the effect
 */
export function stateFault(path: string, error: unknown, consequence = ""): unknown {
  if (!(error instanceof Error && "syscall" in error)) return error;
  const detail =
    `${path} cannot be used (${error.message}). Make it and its directory writable for this user, free some space if the disk is full, or set STATE_PATH to another directory. ${consequence}`.trimEnd();
  return new ProblemError({ code: "state_unusable", detail }, error);
}
