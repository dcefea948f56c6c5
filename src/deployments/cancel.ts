import type { Log } from "../log.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { type Ending, findDeployment } from "./deployment.ts";
import { transition } from "./states.ts";

/**
 * Cancels a deployment that waits in the queue. Call it in a transaction.
 *
 * @param by who requested it, as the command reported
 * @returns whether it waited; if it runs, the queue has to end it
 */
export function cancelQueued(store: Store, id: number, by: string | null): boolean {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "queued") return false;
  transition(store, deployment, "cancelled");
  store.run("UPDATE deployments SET cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?", by, id);
  return true;
}

/** The ending of a run that somebody cancelled. */
export const cancelledEnding: Ending = { state: "cancelled", exitCode: null, problem: null };

/** How long a cancelled script may take to end by itself: as long as at its time-out. */
export const cancelGraceMs = 15_000;

/**
 * Records that a running deployment is being cancelled, before its script is asked to end: if the service dies first,
 * the script is not run again. If the disk fails, the script is still stopped.
 */
export function requestCancel(store: Store, id: number, by: string | null, log: Log): void {
  const sql =
    "UPDATE deployments SET cancel_asked_at_ms = ?, cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?";
  try {
    store.transaction(() => store.run(sql, Date.now(), by, id));
  } catch (error) {
    const text = `The cancellation of deployment ${id} could not be written to disk. Its script is stopped anyway. If the service dies first, the deployment runs again: cancel it once more`;
    log.error({ event: "store.failed", err: error }, text);
  }
}

/** Whether somebody cancelled a deployment since its last start. */
export function isCancelRequested(store: Store, id: number): boolean {
  const row = store.get("SELECT cancel_asked_at_ms AS at_ms FROM deployments WHERE id = ?", id);
  return typeof row?.at_ms === "number";
}
