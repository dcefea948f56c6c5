import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { asWritten, parseEnvFile, withoutValues, withVariable } from "#platform/env-file";
import { type Access, ownUid } from "#platform/files";
import {
  makeForeignDirectory,
  readForeignFile,
  replaceForeignFile,
  statForeignFile,
} from "#platform/foreign-files";
import { CommandError } from "#problems";

/** A file as it should be, and as it is. */
export interface PlannedFile {
  /** From the directory that it is planned in. */
  readonly name: string;
  readonly path: string;
  readonly text: string;
  /** Permission bits; null: as they are, or 0644 for a new file. */
  readonly mode: number | null;
  /** Who owns it; by default, the owner of its directory. Only root can give a file to another user. */
  readonly owner?: NonNullable<Access["owner"]>;
  /** The present text; null if there is no file. */
  readonly before: string | null;
  readonly state: "new" | "changed" | "mode" | "right";
  /** Its purpose, in a few words. */
  readonly purpose: string;
  /** The part of its text that may be shown; all of it by default. */
  readonly shown?: (text: string) => string;
}

/** A directory as it should be made if it is missing. */
export type PlannedDirectory = Access & { readonly path: string };

export type WantedFile = Pick<PlannedFile, "name" | "mode" | "owner" | "purpose" | "shown"> & {
  /** Makes the text from the present one; null if there is no file. */
  readonly make: (before: string | null) => string;
};

/** The user of this process, as an owner. */
export function self() {
  return { uid: ownUid(), gid: process.getgid?.() ?? 0 };
}

/** Nobody writes a larger file of this kind by hand. */
const mostBytes = 1024 ** 2;

/**
 * Compares the wanted file with the present one.
 *
 * @throws CommandError if it is a link, which might lead to a file of others, not a regular file, or not readable
 */
export function planFile(root: string, { make, ...wanted }: WantedFile): PlannedFile {
  const path = join(root, wanted.name);
  if (!(lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? true))
    throw new CommandError(`${path} is a link or a directory. Put a file in its place and run this again.`);
  const before = readIfThere(path);
  const text = make(before);
  const planned = { ...wanted, path, text, before };
  if (before !== text) return { ...planned, state: before === null ? "new" : "changed" };
  return { ...planned, state: hasAccess(path, wanted) ? "right" : "mode" };
}

/**
 * Writes a planned file as a whole: every reader, also after a power cut, sees the old text or the new one. If root sets up
 * another user's checkout, the file belongs to that user, and no link of theirs is followed.
 *
 * @throws CommandError if the directory is not writable
 */
export function writePlanned({ path, text, mode, owner, state }: PlannedFile): void {
  if (state === "right") return;
  const isRoot = ownUid() === 0;
  try {
    const directory = dirname(path);
    if (statForeignFile(directory) === null) makeForeignDirectory(directory, { mode: 0o755, owner: null });
    const access = {
      mode: mode ?? (statForeignFile(path)?.mode ?? 0o644) & 0o777,
      // Only root has to say whose a file is.
      owner: isRoot ? (owner ?? statForeignFile(directory)) : null,
    };
    replaceForeignFile(path, text, access);
  } catch (error) {
    throw notWritten(path, error);
  }
}

/**
 * Makes the directory, or corrects its mode and owner: a run that was killed, and Docker, leave directories of root.
 *
 * @throws CommandError if this user may not
 */
export function makeDirectory({ path, ...access }: PlannedDirectory): void {
  try {
    makeForeignDirectory(path, access);
  } catch (error) {
    throw notWritten(path, error);
  }
}

/** The text of a file that another user may have written; null if there is none. @throws CommandError if it cannot be read */
export function readIfThere(path: string): string | null {
  try {
    return readForeignFile(path, { mostBytes }).toString();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw new CommandError(`${path} exists but cannot be read (${code ?? "unknown error"}).`);
  }
}

function notWritten(path: string, error: unknown): CommandError {
  const { code } = error as NodeJS.ErrnoException;
  const next =
    code === "ENOSPC"
      ? "The disk is full. Free some space and run this again."
      : "Run this as the owner of its directory, or with sudo.";
  return new CommandError(`${path} cannot be written (${code ?? String(error)}). ${next}`);
}

function hasAccess(path: string, { mode, owner }: Pick<WantedFile, "mode" | "owner">): boolean {
  const stats = statForeignFile(path);
  const isOwned =
    owner === undefined || ownUid() !== 0 || (stats?.uid === owner.uid && stats.gid === owner.gid);
  return isOwned && (mode === null || ((stats?.mode ?? 0) & 0o777) === mode);
}

/** A variable that a file of settings should have. */
export interface Setting {
  readonly name: string;
  readonly value: string;
  /** Whether a person may choose another value: then a value that is there stays. */
  readonly isOpen: boolean;
}

/**
 * The text with `settings` in it. A wrong value is replaced in its place, a missing one is added at the end, and every other
 * line stays.
 *
 * @throws CommandError if a value cannot be written so that all programs that read the file agree on it
 */
export function withSettings(text: string, settings: readonly Setting[]): string {
  const now = parseEnvFile(text);
  const wrong = settings.filter(({ name, value, isOpen }) => !now[name] || (!isOpen && now[name] !== value));
  return wrong.reduce((before, setting) => withVariable(before, setting.name, written(setting)), text);
}

function written({ name, value }: Setting): string {
  const raw = asWritten(value);
  if (raw !== null) return raw;
  throw new CommandError(
    `${name} would be ${JSON.stringify(value)}, which cannot be written to .env. Rename the directory so that its path has no apostrophe and no line break.`,
  );
}

/** The text with all values hidden except those of `settings` that are not secret: safe to show on a screen. */
export function withoutOtherValues(text: string, settings: readonly Setting[]): string {
  const names = settings.map(({ name }) => name).filter((name) => !name.startsWith("WEBHOOK_SECRET"));
  return withoutValues(text, new Set(names));
}
