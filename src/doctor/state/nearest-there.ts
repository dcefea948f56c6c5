import { existsSync } from "node:fs";
import { dirname } from "node:path";

/** The nearest of `path` and the directories above it that is there: what holds `path`, or will hold it. */
export function nearestThere(path: string): string {
  return existsSync(path) || path === "/" ? path : nearestThere(dirname(path));
}
