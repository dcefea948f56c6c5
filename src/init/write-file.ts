import { chmodSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { replaceFile } from "../platform/replace-file.ts";
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
  try {
    replaceFile(path, text, { mode: mode ?? modeOf(path), owner: ownerFor(dirname(path)) });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SetupError(
      `${path} cannot be written (${code ?? String(error)}). Whose directory is it? This user has the id ${process.getuid?.()}.`,
    );
  }
}

function modeOf(path: string): number {
  return (statSync(path, { throwIfNoEntry: false })?.mode ?? plainMode) & 0o777;
}

/** Null where a file gets the right owner by itself. */
function ownerFor(directory: string): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const { uid, gid } = statSync(directory);
  return { uid, gid };
}
