import type { Log } from "../log.ts";
import type { Deployment, Ending } from "./deployment.ts";
import { move } from "./move.ts";
import { findDeployment } from "./record.ts";
import type { Store } from "./store.ts";

/**
 * Cancels a deployment that waits for its turn; to be called in a transaction.
 *
 * @param by who asked for it, as the command reported
 * @returns whether it waited: where it runs by now it is for the queue to end it
 */
export function cancelQueued(store: Store, id: number, by: string | null): boolean {
  const deployment: Deployment | null = findDeployment(store, id);
  if (deployment?.state !== "queued") return false;
  move(store, deployment, "cancelled");
  store.run("UPDATE deployments SET cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?", by, id);
  return true;
}

/** The ending of a run whose end was asked for. */
export const cancelledEnding: Ending = { state: "cancelled", exitCode: null, problem: null };

/** How long a script may take to end by itself when its deployment is cancelled: as at its time-out. */
export const cancelGraceMs = 15_000;

/**
 * Writes down that a running deployment is to end as cancelled, before its script is asked to: should the service die
 * before the script does, it is not run again. A disk that fails is no reason to let the script go on.
 */
export function askToCancel(store: Store, id: number, by: string | null, log: Log): void {
  const sql =
    "UPDATE deployments SET cancel_asked_at_ms = ?, cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?";
  try {
    store.transaction(() => store.run(sql, Date.now(), by, id));
  } catch (error) {
    const text = `That deployment ${id} is cancelled could not be written to disk; its script is ended all the same. Should the service die first, the deployment runs again: then cancel it once more`;
    log.error({ event: "store.failed", err: error }, text);
  }
}

/** Whether somebody asked for the end of a deployment since it was started last. */
export function isCancelAsked(store: Store, id: number): boolean {
  const row = store.get("SELECT cancel_asked_at_ms AS at_ms FROM deployments WHERE id = ?", id);
  return typeof row?.at_ms === "number";
}
