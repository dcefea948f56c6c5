import { lstatSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { readForeignFile, replaceForeignFile } from "../platform/foreign-files.ts";
import { SetupError } from "./setup-error.ts";

const plainMode = 0o644;
/** Nobody writes a larger file of this kind by hand. */
const mostBytes = 1024 ** 2;

/** A file as it should be, and as it is. */
export interface PlannedFile {
  /** From the directory that it is planned in. */
  readonly name: string;
  /** Where it is written: the target, if `name` is a link within the repository. */
  readonly path: string;
  readonly text: string;
  /** Permission bits; null: as they are, or 0644 for a new file. */
  readonly mode: number | null;
  /** Who owns it; by default, the owner of its directory. Only root can give a file to another user. */
  readonly owner?: Owner;
  /** The present text; null if there is no file. */
  readonly before: string | null;
  readonly state: "new" | "changed" | "mode" | "right";
  /** Its purpose, in a few words. */
  readonly purpose: string;
  /** The part of its text that may be shown; all of it by default. null: the purpose says what changes. */
  readonly shown?: ((text: string) => string) | null;
}

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export type WantedFile = Pick<PlannedFile, "name" | "mode" | "owner" | "purpose" | "shown"> & {
  /** Makes the text from the present one; null if there is no file. */
  readonly make: (before: string | null) => string;
};

/**
 * Compares the wanted file with the present one.
 *
 * @throws SetupError if the file is a link out of the repository, not a regular file, or not readable
 */
export function planFile(root: string, { make, ...wanted }: WantedFile): PlannedFile {
  const path = targetOf(root, wanted.name);
  const before = readText(path);
  const text = make(before);
  return { ...wanted, path, text, before, state: stateOf(path, wanted, before, text) };
}

/**
 * Writes a planned file as a whole: every reader, also after a power cut, sees the old text or the new one. If root sets up
 * another user's checkout, the file belongs to that user, and no link of theirs is followed.
 *
 * @throws SetupError if the directory is not writable
 */
export function writePlanned({ path, text, mode, owner, state }: PlannedFile): void {
  if (state === "right") return;
  try {
    const access = { mode: mode ?? modeOf(path), owner: givenOwner(owner) ?? ownerFor(dirname(path)) };
    mkdirSync(dirname(path), { recursive: true });
    replaceForeignFile(path, text, access);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const advice =
      code === "ENOSPC"
        ? diskFull
        : `Check who owns the directory; this user has the id ${process.getuid?.()}.`;
    throw new SetupError(`${path} cannot be written (${code ?? String(error)}). ${advice}`);
  }
}

/** The advice on ENOSPC. */
export const diskFull = "The disk is full. Free some space and run this again.";

function stateOf(
  path: string,
  { mode, owner }: Pick<WantedFile, "mode" | "owner">,
  before: string | null,
  text: string,
): PlannedFile["state"] {
  if (before === null) return "new";
  if (before !== text) return "changed";
  const stats = statSync(path);
  const wanted = givenOwner(owner) ?? stats;
  const isOwned = stats.uid === wanted.uid && stats.gid === wanted.gid;
  return isOwned && (mode === null || (stats.mode & 0o777) === mode) ? "right" : "mode";
}

/** Writing through a link out of the repository would change a file that does not belong to the project. */
function targetOf(root: string, name: string): string {
  const path = join(root, name);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return path;
  if (!stats.isSymbolicLink())
    throw new SetupError(`${path} is not a file. Move it away and run this again.`);
  const target = resolved(path);
  if (target === null || relative(realpathSync(root), target).startsWith("..")) {
    throw new SetupError(
      `${path} is a link that leads out of ${root}${target === null ? ", to nothing" : `, to ${target}`}. Put a file in its place and run this again.`,
    );
  }
  return target;
}

function resolved(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

function readText(path: string): string | null {
  try {
    return readForeignFile(path, { mostBytes }).toString();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new SetupError(`${path} exists but cannot be read (${code ?? "unknown error"}).`);
  }
}

function modeOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? plainMode) & 0o777;
}

/** Null for a user who cannot give files away. */
function givenOwner(owner: Owner | undefined): Owner | null {
  return owner !== undefined && process.getuid?.() === 0 ? owner : null;
}

/** Null if a file gets the right owner by itself. */
function ownerFor(directory: string): Owner | null {
  if (process.getuid?.() !== 0) return null;
  const { uid, gid } = statSync(directory);
  return { uid, gid };
}
