import { lockRollout, type RolloutLock } from "./lock.ts";
import type { RolloutRequest } from "./request.ts";

/**
 * Takes the project's lock; where another roll-out has it, that is told, and for how long it was waited for.
 *
 * @throws ProblemError as `lockRollout` does
 */
export async function lockInTurn({
  lockPath,
  lockWaitS,
  report,
  signal,
}: Pick<RolloutRequest, "lockPath" | "lockWaitS" | "report" | "signal">): Promise<RolloutLock> {
  let waitingSinceMs: number | null = null;
  const onWait = (holder: string) => {
    waitingSinceMs = performance.now();
    const text = `waiting for another roll-out of this project (process ${holder}), ${lockWaitS} s at most`;
    report({ event: "note", service: null, text });
  };
  const lock = await lockRollout(lockPath, lockWaitS, { onWait, signal });
  if (waitingSinceMs !== null) {
    const durationMs = Math.round(performance.now() - waitingSinceMs);
    report({ event: "step", service: null, step: "lock", durationMs, detail: "the other roll-out is done" });
  }
  return lock;
}
