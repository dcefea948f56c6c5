import { chmodSync, lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { replaceFile } from "../platform/replace-file.ts";
import { SetupError } from "./setup-error.ts";

const plainMode = 0o644;

/** A file as it should be, and as it is. */
export interface PlannedFile {
  /** From the root of the repository. */
  readonly name: string;
  /** Where it is written: the target, if `name` is a link within the repository. */
  readonly path: string;
  readonly text: string;
  /** Permission bits; null: as they are, or 0644 for a new file. */
  readonly mode: number | null;
  /** The present text; null if there is no file. */
  readonly before: string | null;
  readonly state: "new" | "changed" | "mode" | "right";
  /** Its purpose, in a few words. */
  readonly purpose: string;
  /** The part of its text that may be shown; all of it by default. */
  readonly shown?: (text: string) => string;
}

export type WantedFile = Pick<PlannedFile, "name" | "mode" | "purpose" | "shown"> & {
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
  return { ...wanted, path, text, before, state: stateOf(path, wanted.mode, before, text) };
}

/**
 * Writes a planned file as a whole: every reader, also after a power cut, sees the old text or the new one. If root sets up
 * another user's checkout, the file belongs to that user.
 *
 * @throws SetupError if the directory is not writable
 */
export function writePlanned({ path, text, mode, state }: PlannedFile): void {
  if (state === "right") return;
  if (state === "mode") {
    chmodSync(path, mode ?? plainMode);
    return;
  }
  try {
    replaceFile(path, text, { mode: mode ?? modeOf(path), owner: ownerFor(dirname(path)) });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SetupError(
      `${path} cannot be written (${code ?? String(error)}). Check who owns the directory; this user has the id ${process.getuid?.()}.`,
    );
  }
}

function stateOf(
  path: string,
  mode: number | null,
  before: string | null,
  text: string,
): PlannedFile["state"] {
  if (before === null) return "new";
  if (before !== text) return "changed";
  return mode !== null && (statSync(path).mode & 0o777) !== mode ? "mode" : "right";
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
      `${path} is a link that leads out of the repository${target === null ? ", to nothing" : `, to ${target}`}. Put a file in its place and run this again.`,
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
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new SetupError(`${path} exists but cannot be read (${code ?? "unknown error"}).`);
  }
}

function modeOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? plainMode) & 0o777;
}

/** Null if a file gets the right owner by itself. */
function ownerFor(directory: string): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const { uid, gid } = statSync(directory);
  return { uid, gid };
}
