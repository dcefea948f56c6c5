import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { PlannedFile } from "./planned-file.ts";
import { SetupError } from "./setup-error.ts";

const plainMode = 0o644;

/**
 * Writes a planned file as a whole: a reader, and a machine that loses power, sees the old text or the new one. A root
 * who sets up somebody else's checkout gives the file to its owner.
 *
 * @throws SetupError where the directory cannot be written to
 */
export function writePlanned({ path, text, mode, state }: PlannedFile): void {
  if (state === "right") return;
  if (state === "mode") {
    chmodSync(path, mode ?? plainMode);
    return;
  }
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}`);
  try {
    const fd = openSync(unfinished, "wx", 0o600);
    try {
      writeSync(fd, text);
      fchmodSync(fd, mode ?? modeOf(path));
      giveToOwner(fd, dirname(path));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    const { code } = error as NodeJS.ErrnoException;
    throw new SetupError(
      `${path} cannot be written (${code ?? String(error)}). Whose directory is it? This user has the id ${process.getuid?.()}.`,
    );
  }
}

function modeOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? plainMode) & 0o777;
}

function giveToOwner(fd: number, directory: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(directory);
  fchownSync(fd, uid, gid);
}
