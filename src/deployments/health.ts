import { runningForMs } from "./claim.ts";
import type { Store } from "./store.ts";

const probeIntervalMs = 5_000;
/** A run is ended at its time-out; where it is still there so much later, something is wrong with the service. */
const overdueMs = 5 * 60_000;

/**
 * Makes the check behind /health: the database can be written and no run is far past its time-out. A failed deployment
 * is no ill health: a restart would not help it. The database is asked every 5 s at most.
 *
 * @returns a function that gives what is wrong, or null
 */
export function createHealthCheck(store: Store, deployTimeoutMs: number): () => string | null {
  let probedAtMs = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  return () => {
    if (performance.now() - probedAtMs < probeIntervalMs) return fault;
    fault = probe(store, deployTimeoutMs);
    probedAtMs = performance.now();
    return fault;
  };
}

function probe(store: Store, deployTimeoutMs: number): string | null {
  try {
    store.transaction(() =>
      store.run(
        "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms",
        Date.now(),
      ),
    );
    const isOverdue = runningForMs(store) > deployTimeoutMs + overdueMs;
    return isOverdue ? "A deployment is far past its time-out. The log of the service says more." : null;
  } catch {
    return "The database cannot be written. The log of the service says more.";
  }
}
