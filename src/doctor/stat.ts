import { type Stats, statSync } from "node:fs";

/** What is at `path`, or null where nothing is or nothing may be seen. */
export function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}
