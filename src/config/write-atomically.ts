import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

const ownerOnly = 0o600;

/**
 * Replaces the file at `path` as a whole: whoever reads it sees the old text or the new one, after a power cut too.
 * It keeps its mode and its owner; a new one is for its owner alone. A link stays one.
 */
export function writeAtomically(path: string, text: string): void {
  const target = statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : path;
  const before = statSync(target, { throwIfNoEntry: false });
  const unfinished = `${target}.${randomBytes(6).toString("hex")}`;
  try {
    writeFileSync(unfinished, text, { mode: ownerOnly, flag: "wx", flush: true });
    if (before) {
      if (process.getuid?.() === 0) chownSync(unfinished, before.uid, before.gid);
      chmodSync(unfinished, before.mode & 0o777);
    }
    renameSync(unfinished, target);
    sync(dirname(target));
  } finally {
    rmSync(unfinished, { force: true });
  }
}

function sync(directory: string): void {
  const fd = openSync(directory, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
