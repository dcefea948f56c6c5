import { randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/** Who may do what with a file. */
export interface Access {
  readonly mode: number;
  /** Null: the user of this process. Another one only where that is root. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
}

/**
 * Replaces the file at `path` as a whole, or makes it: whoever reads it, and a machine that loses power, sees the old text
 * or the new one; the new one is on disk when this returns, where the directory can be synced. Of a link, the link is replaced.
 *
 * @throws the system's error; then the file is what it was
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
    // A directory that may be written and not read, or a file system that cannot sync one: the file is replaced all the same.
    const { code = "" } = error as NodeJS.ErrnoException;
    if (!["EACCES", "EPERM", "EINVAL", "ENOTSUP"].includes(code)) throw error;
  }
}
