import { createHash } from "node:crypto";
import { chown, type FileHandle, mkdir, open } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { flock } from "#platform/file-lock";
import { type Access, nearestExisting, ownUid, statOf } from "#platform/files";
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
 * is aborted first, `state_unusable` or `tool_missing` if locking is not possible
 */
export async function lockRollout(
  path: string,
  waitS: number,
  options: LockOptions = {},
): Promise<RolloutLock> {
  try {
    await makeStateDirectory(dirname(path));
    const file = await open(path, "a+");
    try {
      const owner = inheritedOwner(dirname(path));
      if (owner !== null) await file.chown(owner.uid, owner.gid);
      if ((await tryLock(file.fd, path, 0)) !== "locked") await waitForLock(file, path, waitS, options);
      await file.truncate(0);
      await file.write(`${process.pid}\n`);
      return { descriptor: file.fd, release: () => file.close() };
    } catch (error) {
      await file.close();
      throw error;
    }
  } catch (error) {
    throw stateFault(path, error, "Nothing was changed.");
  }
}

async function waitForLock(
  file: FileHandle,
  path: string,
  waitS: number,
  { report = () => {}, signal }: LockOptions,
): Promise<void> {
  const holder = await readHolder(file);
  if (waitS === 0) throw busy(path, waitS, holder);
  note({ report }, `waiting for another roll-out of this project (process ${holder}), ${waitS} s at most`);
  const wait = async () => {
    const attempt = await tryLock(file.fd, path, waitS, signal);
    if (attempt === "interrupted") throw interrupted(holder);
    if (attempt === "busy") throw busy(path, waitS, holder);
  };
  await timed({ report }, "lock", wait, "the other roll-out is done");
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

/**
 * Tries to lock the open file `descriptor`; waits up to `waitS` seconds for another process, or until `signal` is
 * aborted.
 *
 * @param path of the file, for the error message
 * @returns `interrupted` if flock, or its caller, was asked to stop
 * @throws ProblemError `tool_missing` without flock, `state_unusable` if it fails
 */
async function tryLock(
  descriptor: number,
  path: string,
  waitS: number,
  signal?: AbortSignal,
): Promise<"locked" | "busy" | "interrupted"> {
  try {
    if (await flock(descriptor, { waitS, signal })) return "locked";
    return signal?.aborted ? "interrupted" : "busy";
  } catch (error) {
    throw lockFault(path, error as NodeJS.ErrnoException);
  }
}

function lockFault(path: string, error: NodeJS.ErrnoException): ProblemError {
  if (error.code === "ENOENT") {
    const detail = "The program flock could not be started. Install util-linux. Nothing was changed.";
    return new ProblemError({ code: "tool_missing", detail }, error);
  }
  const detail = `${path} could not be locked (${error.message}). Nothing was changed. Roll out again; if that fails in the same way, set STATE_PATH to a directory whose file system has locks.`;
  return new ProblemError({ code: "state_unusable", detail }, error);
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
  const [lockPath, versionsPath] = [join(directory, `${name}.lock`), join(directory, `${name}.json`)];
  return { lockPath, versionsPath, statePath: stateDirectory };
}

/**
 * Makes a directory of state files. As root, it belongs to the owner of the directory above it: scripts of a project
 * on the server run as the owner of its checkout, and must be able to use what a roll-out by hand has made.
 */
export async function makeStateDirectory(path: string): Promise<void> {
  const owner = inheritedOwner(nearestExisting(path));
  const made = await mkdir(path, { recursive: true });
  if (made !== undefined && owner !== null) await chown(path, owner.uid, owner.gid);
}

/** The owner of a new file in `directory`: if root makes it, that of the directory; null for this user. */
export function inheritedOwner(directory: string): Access["owner"] {
  const stats = ownUid() === 0 ? statOf(directory) : null;
  return stats === null || stats.uid === 0 ? null : { uid: stats.uid, gid: stats.gid };
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
