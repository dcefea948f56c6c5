import { ProblemError } from "../../problems.ts";
import { lockRollout, type RolloutLock } from "../lock.ts";

/**
 * Does `work` while no roll-out can run; where one holds the lock at `lockPath`, nothing is done, and nobody waits.
 *
 * @param lockPath undefined where no lock is known: then it is done at once
 */
export async function unlessRollingOut(
  lockPath: string | undefined,
  work: () => Promise<void>,
): Promise<void> {
  if (lockPath === undefined) return work();
  const lock = await lockIfFree(lockPath);
  if (lock === null) return;
  try {
    await work();
  } finally {
    await lock.release();
  }
}

async function lockIfFree(path: string): Promise<RolloutLock | null> {
  try {
    return await lockRollout(path, 0);
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === "rollout_locked") return null;
    throw error;
  }
}
