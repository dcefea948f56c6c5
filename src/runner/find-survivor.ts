import {
  isHeld,
  listRuns,
  readCheckout,
  readExitCode,
  removeRunDirectory,
  runDirectory,
} from "./run-directory.ts";

export interface FindSurvivorOptions {
  readonly repoPath: string;
  readonly statePath: string;
  /** The state of other projects, of which one may have had this checkout before. */
  readonly otherStatePaths: readonly string[];
}

/** Another run than `ownId` whose script still runs in this checkout, or null; the files of ended runs are removed. */
export async function findSurvivor(
  { repoPath, statePath, otherStatePaths }: FindSurvivorOptions,
  ownId: number,
): Promise<number | null> {
  for (const path of otherStatePaths) {
    const id = await findRunIn(path, repoPath);
    if (id !== null) return id;
  }
  for (const id of listRuns(statePath)) {
    const directory = runDirectory(statePath, id);
    // A background process of an ended script may hold its lock for ever.
    const hasEnded = id === ownId || readExitCode(directory) !== null;
    if (!hasEnded && (await isHeld(directory, id, repoPath))) return id;
    removeRunDirectory(directory);
  }
  return null;
}

/** A run of another project that goes on in the checkout at `repoPath`, which was that project's before. */
async function findRunIn(statePath: string, repoPath: string): Promise<number | null> {
  for (const id of listRuns(statePath)) {
    const directory = runDirectory(statePath, id);
    const isThere = readCheckout(directory) === repoPath && readExitCode(directory) === null;
    if (isThere && (await isHeld(directory, id, repoPath))) return id;
  }
  return null;
}
