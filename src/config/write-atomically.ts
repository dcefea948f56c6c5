import { realpathSync, type Stats, statSync } from "node:fs";
import { type Access, replaceFile } from "../files/replace-file.ts";

/**
 * Replaces the file at `path` as a whole: whoever reads it sees the old text or the new one, after a power cut too.
 * It keeps its mode and its owner; a new one has those of the file `like`, else it is for its owner alone. A link stays one.
 */
export function writeAtomically(path: string, text: string, like: string = path): void {
  const before = statSync(path, { throwIfNoEntry: false });
  const model = before ?? statSync(like, { throwIfNoEntry: false });
  const access = model ? accessOf(model) : { mode: 0o600, owner: null };
  replaceFile(before ? realpathSync(path) : path, text, access);
}

function accessOf({ mode, uid, gid }: Stats): Access {
  return { mode: mode & 0o777, owner: process.getuid?.() === 0 ? { uid, gid } : null };
}
