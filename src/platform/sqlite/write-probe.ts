import type { Store } from "./store.ts";

/**
 * Writes to the database, and so puts all earlier batches on disk. It must have the table `probes`.
 *
 * @throws if it cannot be written
 */
export function writeProbe(store: Store): void {
  // A row that stays the same is not written.
  const sql =
    "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = max(at_ms + 1, excluded.at_ms)";
  store.transaction(() => store.run(sql, Date.now()));
}

/** Whether the database can be written now. */
export function canWrite(store: Store): boolean {
  try {
    writeProbe(store);
    return true;
  } catch {
    return false;
  }
}

/** Strangers may ask for the health of a service as often as they like, so the disk is written to only now and then. */
export function checkAtMostEvery(intervalMs: number, check: () => string | null): () => string | null {
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let fault: string | null = null;
  return () => {
    if (performance.now() - checkedAtMs < intervalMs) return fault;
    fault = check();
    checkedAtMs = performance.now();
    return fault;
  };
}
