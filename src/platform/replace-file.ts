import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/** Who may do what with a file. */
export interface Access {
  readonly mode: number;
  /** Null: the user of this process. Only root can name another one. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/**
 * Replaces the file at `path` as a whole, or creates it: every reader, also after a power cut, sees the old text or the new
 * one. The new one is on disk when this returns, if the directory can be synced. A link itself is replaced, not its target.
 *
 * @throws the system's error; then the file is unchanged
 */
export function replaceFile(path: string, text: string, access: Access): void {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    write(unfinished, text, access);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  syncDirectory(dirname(path));
}

/**
 * Replaces the file at `path` as `replaceFile` does, and keeps its mode and owner; a link stays a link. A new file gets those
 * of the file `like`, else only its owner can read it.
 */
export function rewriteFile(path: string, text: string, like: string = path): void {
  const before = statSync(path, { throwIfNoEntry: false });
  const model = before ?? statSync(like, { throwIfNoEntry: false });
  const access = model ? accessOf(model) : { mode: 0o600, owner: null };
  replaceFile(before ? realpathSync(path) : path, text, access);
}

function accessOf({ mode, uid, gid }: Stats): Access {
  return { mode: mode & 0o777, owner: process.getuid?.() === 0 ? { uid, gid } : null };
}

function write(path: string, text: string, { mode, owner }: Access): void {
  const descriptor = openSync(path, "wx", 0o600);
  try {
    writeFileSync(descriptor, text);
    if (owner) fchownSync(descriptor, owner.uid, owner.gid);
    fchmodSync(descriptor, mode);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Without it, the name may lead to the old file again after a power cut. */
function syncDirectory(directory: string): void {
  try {
    const descriptor = openSync(directory, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    // A write-only directory, or a file system that cannot sync directories: the file is replaced anyway.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EPERM", "EINVAL", "ENOTSUP"].includes(code)) throw error;
  }
}
