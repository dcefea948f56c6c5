import { chmodSync, chownSync, mkdirSync, statSync } from "node:fs";
import type { PlannedDirectory } from "../../setup/server-files.ts";
import { diskFull, writePlanned } from "../planned-file.ts";
import { SetupError } from "../setup-error.ts";
import type { MachineSetup } from "./plan-on-machine.ts";

/**
 * Writes what is not right yet: the directories and the files.
 *
 * @throws SetupError if this user may not
 */
export function writeOnMachine({ directories, machineFiles, checkoutFiles }: MachineSetup): void {
  for (const directory of directories) makeDirectory(directory);
  for (const file of [...machineFiles, ...checkoutFiles]) writePlanned(file);
}

/**
 * Makes the directory, or corrects its mode and owner: a run that was killed, and Docker, leave directories of root.
 *
 * @throws SetupError if this user may not
 */
export function makeDirectory({ path, mode, owner: { uid, gid } }: PlannedDirectory): void {
  try {
    mkdirSync(path, { recursive: true });
    const present = statSync(path);
    if (present.uid !== uid || present.gid !== gid) chownSync(path, uid, gid);
    if ((present.mode & 0o7777) !== mode) chmodSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SetupError(
      `${path} cannot be made (${code ?? String(error)}). ${code === "ENOSPC" ? diskFull : "Run this as root, or as a user who may use Docker and write there."}`,
    );
  }
}
