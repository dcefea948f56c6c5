import type { Store } from "./store.ts";

/** Whether the database can be written now. It must have the table `probes`. */
export function canWrite(store: Store): boolean {
  const sql = "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = excluded.at_ms";
  try {
    store.transaction(() => store.run(sql, Date.now()));
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
