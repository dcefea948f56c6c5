import { canWrite, checkAtMostEvery, type Store } from "#platform/sqlite";
import { listRunning } from "./history.ts";

interface HealthLimits {
  /** The database is probed at most this often. */
  readonly probeIntervalMs: number;
  /** A run is ended at its time-out. If it is still there this much later, the service is at fault. */
  readonly overdueMs: number;
}

/**
 * Makes the check behind /health: the database can be written and no run is far past its time-out. A failed deployment
 * does not make the service unhealthy, because a restart would not help.
 *
 * @param timeoutMsOf null for a project without settings: nothing can be done about what it runs
 * @returns a function that returns the fault, or null
 */
export function createHealthCheck(
  store: Store,
  timeoutMsOf: (project: string) => number | null,
  limits: HealthLimits = { probeIntervalMs: 5_000, overdueMs: 5 * 60_000 },
): () => string | null {
  // Since when this process has seen the run, not since when the record says it runs: wall clocks jump.
  let seenSinceMs: ReadonlyMap<string, number> = new Map();

  function isOverdue(): boolean {
    const nowMs = performance.now();
    const runs = listRunning(store).map(({ id, attempts, project }) => ({
      key: `${id} ${attempts}`,
      project,
    }));
    seenSinceMs = new Map(runs.map(({ key }) => [key, seenSinceMs.get(key) ?? nowMs]));
    return runs.some(({ key, project }) => {
      const timeoutMs = timeoutMsOf(project);
      return timeoutMs !== null && nowMs - (seenSinceMs.get(key) ?? nowMs) > timeoutMs + limits.overdueMs;
    });
  }

  return checkAtMostEvery(limits.probeIntervalMs, () => {
    if (!canWrite(store)) return "The database cannot be written. The log of the service says more.";
    return isOverdue() ? "A deployment is far past its time-out. The log of the service says more." : null;
  });
}
