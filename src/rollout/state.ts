import { createHash } from "node:crypto";
import { chown, type FileHandle, mkdir, open } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { inheritedOwner, nearestExisting, replaceFile } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { flock } from "#platform/run-command";
import { ProblemError } from "#problems";
import { note, type Report, timed } from "./report.ts";

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

interface LockOptions {
  /** Is given what the roll-out waits for, and for how long it waited. */
  readonly report?: Report;
  /** Aborted to stop waiting. */
  readonly signal?: AbortSignal;
}

/**
 * Takes the lock at `path`, and waits up to `waitS` seconds for another roll-out. The kernel releases it with the
 * last process that holds it, so it is never stale.
 *
 * @returns `descriptor` is for children that change containers: the lock then lasts until they have ended, even if this
 * process is killed
 * @throws ProblemError `rollout_locked` if the other roll-out does not end in time, `rollout_interrupted` if `signal`
 * is aborted first, `state_unusable` if locking is not possible
 */
export async function lockRollout(path: string, waitS: number, options: LockOptions = {}) {
  let file: FileHandle | null = null;
  try {
    const owner = await makeStateDirectory(dirname(path));
    const lock = await open(path, "a+");
    file = lock;
    if (owner !== null) await lock.chown(owner.uid, owner.gid);
    await waitForLock(lock.fd, path, waitS, options);
    return { descriptor: lock.fd, release: () => lock.close() };
  } catch (error) {
    await file?.close();
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

/** The result of a good roll-out: the image of each service, by the id that no later build can change. */
export interface Version {
  readonly commit: string;
  readonly finishedAt: string;
  readonly images: Readonly<Record<string, VersionImage>>;
  /** It was rolled back from: a roll back without a commit skips it. */
  readonly wasLeft?: boolean;
}

export interface VersionImage {
  /** The name in the compose file. */
  readonly image: string;
  readonly id: string;
  /** The name by commit that keeps the image; the same as `image` if it was not built here. */
  readonly tag: string;
  /** Containers that run it, by their ids, and what they were started from. */
  readonly containers?: readonly string[];
  readonly contents?: Contents;
}

/** Ids of the contents of tracked files and directories, configs and secrets, by the names that a user knows. */
export type Contents = Readonly<Record<string, string>>;

/** How many good versions are recorded. Prune keeps the images of fewer. */
const remembered = 20;
/** Enough for fifty services that each mount a hundred files. */
const longestBytes = 16 * 1024 ** 2;

/**
 * The good versions of a project, oldest first; empty if there is no file yet.
 *
 * @throws ProblemError `state_unusable`
 */
export async function readVersions(path: string): Promise<readonly Version[]> {
  try {
    const text = readForeignFile(path, { mostBytes: longestBytes }).toString();
    const { versions }: { readonly versions: readonly Version[] } = JSON.parse(text);
    return versions;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    if (!(error instanceof SyntaxError)) throw stateFault(path, error);
    const detail = `${path} is damaged (${error.message}). Put it back from a backup, or remove it: then no version from before is known to roll back to, and prune removes their images.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

/**
 * Replaces the file as a whole, synced to disk before it returns.
 *
 * @throws ProblemError `state_unusable`
 */
export async function writeVersions(path: string, versions: readonly Version[]): Promise<void> {
  const text = `${JSON.stringify({ versions: versions.slice(-remembered) }, null, 2)}\n`;
  try {
    replaceFile(path, text, { mode: 0o600, owner: await makeStateDirectory(dirname(path)) });
  } catch (error) {
    throw stateFault(path, error);
  }
}

/** Adds a good version. If the last one has the same images, the new one replaces it. */
export function withVersion(versions: readonly Version[], version: Version): readonly Version[] {
  const last = versions.at(-1);
  return [...(last && sameImages(last, version) ? versions.slice(0, -1) : versions), version];
}

/**
 * The good version to go back to: the last one whose images differ from those of the newest, or the one of `commit`
 * (any number of its first digits).
 */
export function previousVersion(versions: readonly Version[], commit?: string): Version | null {
  const current = versions.at(-1);
  if (!current) return null;
  const others = versions
    .slice(0, -1)
    .toReversed()
    .filter((version) => version.commit.startsWith(commit ?? "") && !sameImages(version, current));
  // A commit has several versions if its images changed.
  const kept = others.find(({ wasLeft }) => !wasLeft) ?? null;
  return kept ?? (commit === undefined ? null : (others[0] ?? null));
}

/** Says that there is no good version to go back to, and lists those there are. */
export function noGoodVersion(versions: readonly Version[], commit?: string): string {
  const known = versions.map((version) => version.commit.slice(0, 12)).join(", ") || "none";
  const wanted = commit === undefined ? "before the present one" : `of the commit ${commit}`;
  return `There is no good version ${wanted} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`;
}

/** The versions after a roll back to `target`: it is the newest again, and those after it are marked as left. */
export function withReturnTo(
  versions: readonly Version[],
  target: Version,
  finishedAt: string,
): readonly Version[] {
  // Compared by content: the file was read again since `target` was chosen.
  const isTarget = ({ commit, finishedAt: at }: Version) =>
    commit === target.commit && at === target.finishedAt;
  const found = versions.findLastIndex(isTarget);
  const at = found === -1 ? versions.length : found;
  const left = versions.slice(at + 1).map((version) => ({ ...version, wasLeft: true }));
  const { wasLeft: _, ...good } = target;
  return [...versions.slice(0, at), ...left, { ...good, finishedAt }];
}

function sameImages(one: Version, other: Version): boolean {
  const ids = ({ images }: Version) => Object.entries(images).map(([service, { id }]) => `${service} ${id}`);
  return ids(one).sort().join() === ids(other).sort().join();
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
