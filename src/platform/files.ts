import { accessSync, constants, existsSync, lstatSync, type Stats, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

export type FileKind = "file" | "directory" | "other" | "missing" | "broken-link" | "inaccessible";

/** What is at `path`, links followed. */
export function kindOf(path: string): FileKind {
  try {
    const stats = statSync(path);
    return stats.isFile() ? "file" : stats.isDirectory() ? "directory" : "other";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM") return "inaccessible";
    return isLink(path) ? "broken-link" : "missing";
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false; // A part of the path is a file, or it is gone by now.
  }
}

/** The status of what is at `path`, links followed; null if nothing is there, or this user may not see it. */
export function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}

/** `path` if it exists, else the nearest directory above it that does: what holds `path`, or will hold it. */
export function nearestExisting(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestExisting(dirname(path));
}

/** Whether this user may do what `mode` says (of fs.constants: R_OK, X_OK). */
export function isAllowed(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

/** The id of the user that the service runs as. */
export function ownUid(): number {
  return process.getuid?.() ?? 0;
}

/**
 * The file that the name `program` stands for, as execvp(3) looks it up: the first in the directories of `searchPath` that
 * this user may run. An empty directory is the working directory.
 *
 * @param searchPath a PATH
 * @returns its path, links not followed, or null
 */
export function findProgram(program: string, searchPath: string): string | null {
  const places = searchPath.split(delimiter).map((directory) => join(directory || ".", program));
  return places.find(isRunnable) ?? null;
}

/** Whether it is a file, links followed, that this user may run. */
export function isRunnable(path: string): boolean {
  return kindOf(path) === "file" && isAllowed(path, constants.X_OK);
}
