import { constants } from "node:fs";
import { delimiter, join } from "node:path";
import { isAllowed, kindOf } from "./files.ts";

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
