import { realpathSync, type Stats, statSync } from "node:fs";
import { type Access, replaceFile } from "../files/replace-file.ts";

/**
 * Replaces the file at `path` as a whole: whoever reads it sees the old text or the new one, after a power cut too.
 * It keeps its mode and its owner; a new one is for its owner alone. A link stays one.
 */
export function writeAtomically(path: string, text: string): void {
  const before = statSync(path, { throwIfNoEntry: false });
  if (before) replaceFile(realpathSync(path), text, accessOf(before));
  else replaceFile(path, text, { mode: 0o600, owner: null });
}

function accessOf({ mode, uid, gid }: Stats): Access {
  return { mode: mode & 0o777, owner: process.getuid?.() === 0 ? { uid, gid } : null };
}
