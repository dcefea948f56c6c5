import { findRunKey } from "./claim.ts";
import type { Store } from "./store.ts";

interface Limits {
  /** How often the database is asked at most. */
  readonly probeIntervalMs: number;
  /** A run is ended at its time-out; where it is still there so much later, something is wrong with the service. */
  readonly overdueMs: number;
}

/**
 * Makes the check behind /health: the database can be written and no run is far past its time-out. A failed deployment
 * is no ill health: a restart would not help it.
 *
 * @returns a function that gives what is wrong, or null
 */
export function createHealthCheck(
  store: Store,
  deployTimeoutMs: number,
  limits: Limits = { probeIntervalMs: 5_000, overdueMs: 5 * 60_000 },
): () => string | null {
  let probedAtMs = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  // Since when the run has been seen, not since when the record says it has been going on: wall clocks jump.
  let seen: { readonly run: string | null; readonly sinceMs: number } = { run: null, sinceMs: 0 };

  function isOverdue(): boolean {
    const run = findRunKey(store);
    if (run !== seen.run) seen = { run, sinceMs: performance.now() };
    return run !== null && performance.now() - seen.sinceMs > deployTimeoutMs + limits.overdueMs;
  }

  return () => {
    if (performance.now() - probedAtMs < limits.probeIntervalMs) return fault;
    fault = probe(store, isOverdue);
    probedAtMs = performance.now();
    return fault;
  };
}

function probe(store: Store, isOverdue: () => boolean): string | null {
  try {
    store.transaction(() =>
      store.run(
        "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms",
        Date.now(),
      ),
    );
    return isOverdue() ? "A deployment is far past its time-out. The log of the service says more." : null;
  } catch {
    return "The database cannot be written. The log of the service says more.";
  }
}
