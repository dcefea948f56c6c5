import { lstatSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { SetupError } from "./setup-error.ts";

/** A file as it should be, and as it is. */
export interface PlannedFile {
  /** From the root of the repository. */
  readonly name: string;
  /** Where it is written: the target, where `name` is a link within the repository. */
  readonly path: string;
  readonly text: string;
  /** Permission bits; null: as they are, or 0644 for a new file. */
  readonly mode: number | null;
  /** What is there now; null where nothing is. */
  readonly before: string | null;
  readonly state: "new" | "changed" | "mode" | "right";
  /** What it is for, in a few words. */
  readonly purpose: string;
  /** What may be shown of a text of it; the text itself where it is not given. */
  readonly shown?: (text: string) => string;
}

export type WantedFile = Pick<PlannedFile, "name" | "mode" | "purpose" | "shown"> & {
  /** Makes the text of what is there now, null where nothing is. */
  readonly make: (before: string | null) => string;
};

/**
 * Compares what is wanted with what is there.
 *
 * @throws SetupError where the file is a link out of the repository, or no file, or cannot be read
 */
export function planFile(root: string, { make, ...wanted }: WantedFile): PlannedFile {
  const path = targetOf(root, wanted.name);
  const before = readText(path);
  const text = make(before);
  return { ...wanted, path, text, before, state: stateOf(path, wanted.mode, before, text) };
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

/** Writing through a link that leads out of the repository would change something that nobody asked to be changed. */
function targetOf(root: string, name: string): string {
  const path = join(root, name);
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return path;
  if (!stats.isSymbolicLink()) throw new SetupError(`${path} is no file. Move it away and run this again.`);
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
    throw new SetupError(`${path} is there but cannot be read (${code ?? "unknown error"}).`);
  }
}
