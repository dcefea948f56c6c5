import { chmodSync, chownSync, existsSync, mkdirSync } from "node:fs";
import { writePlanned } from "../planned-file.ts";
import { SetupError } from "../setup-error.ts";
import type { PlannedDirectory } from "./machine-files.ts";
import type { MachineSetup } from "./plan-on-machine.ts";

/**
 * Writes what is not right yet: the directories that are missing, and the files.
 *
 * @throws SetupError if this user may not
 */
export function writeOnMachine({ directories, machineFiles, checkoutFiles }: MachineSetup): void {
  for (const directory of directories) makeDirectory(directory);
  for (const file of [...machineFiles, ...checkoutFiles]) writePlanned(file);
}

/** @throws SetupError if this user may not */
export function makeDirectory({ path, mode, owner: { uid, gid } }: PlannedDirectory): void {
  if (existsSync(path)) return;
  try {
    mkdirSync(path, { recursive: true });
    chownSync(path, uid, gid);
    chmodSync(path, mode);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SetupError(
      `${path} cannot be made (${code ?? String(error)}). Run this as root, or as a user who may use Docker and write there.`,
    );
  }
}
