import { createHash } from "node:crypto";
import { chown, mkdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { nearestExisting, ownUid, statOf } from "../platform/files.ts";
import type { Access } from "../platform/replace-file.ts";
import { ProblemError } from "../problems.ts";

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
 * on the machine part run as the owner of its checkout, and must be able to use what a roll-out by hand has made.
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
