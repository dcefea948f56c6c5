import { readFileSync, statSync } from "node:fs";

/** A secret in a file is a password or a key; what is larger is something else. */
const mostBytes = 64 * 1024;

/** The text of the small file at `path` that holds a secret, or nothing if it is absent, unreadable or something else. */
export function readSecretFile(path: string): string {
  try {
    const stats = statSync(path);
    // Reading a pipe would wait for ever.
    return stats.isFile() && stats.size <= mostBytes ? readFileSync(path, "utf8").trim() : "";
  } catch {
    return "";
  }
}
