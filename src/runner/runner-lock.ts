import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { flock } from "../platform/file-lock.ts";

/** The right to run deployments, held by one of the instances that share a state directory. */
export interface RunnerLock {
  readonly release: () => void;
}

/**
 * Waits until this instance is the one that runs deployments. The kernel gives the lock up when its holder dies,
 * however it dies, so it is never stale.
 *
 * @param options.onWait called where another instance has it now
 * @returns null where `signal` was aborted first
 */
export async function becomeRunner(
  statePath: string,
  { signal, onWait }: { signal: AbortSignal; onWait: () => void },
): Promise<RunnerLock | null> {
  const fd = openSync(join(statePath, "runner.lock"), "a", 0o600);
  try {
    if (!(await flock(fd, { waitS: 0 }))) {
      onWait();
      await flock(fd, { waitS: null, signal });
    }
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  if (signal.aborted) {
    closeSync(fd);
    return null;
  }
  return { release: () => closeSync(fd) };
}
