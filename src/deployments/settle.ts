import type { Log } from "../log.ts";
import type { Store } from "../platform/sqlite/store.ts";
import type { Problem } from "../problems.ts";
import { type Deployment, type Ending, findDeployment } from "./deployment.ts";
import { transition } from "./states.ts";

export interface SettleOptions {
  /** Whether somebody cancelled it: then it does not run again. */
  readonly isCancelled?: boolean;
  /** False while the service stops: the next one decides about an interrupted deployment. */
  readonly doesResume?: boolean;
}

/**
 * Records how a running deployment ended, and what happens next if it was interrupted. Call it in a transaction. It is
 * one transaction because in between another instance may record a newer push, which supersedes an interrupted one.
 *
 * @returns the ending as it is recorded
 */
export function settle(
  store: Store,
  deployment: Deployment,
  ending: Ending,
  { isCancelled = false, doesResume = false }: SettleOptions = {},
): Ending {
  const mayResume = ending.state === "interrupted";
  const isUnwanted = mayResume && (isCancelled || isCancelRequested(store, deployment.id));
  const { state, ...details } = isUnwanted ? cancelledEnding : ending;
  transition(store, { id: deployment.id, state: "running" }, state, details);
  if (state === "interrupted" && doesResume) resume(store, deployment.id);
  return { state, ...details };
}

/** A deployment that was interrupted this often is given up: it may be what takes the service down. */
const mostAttempts = 3;

/**
 * Decides what happens to an interrupted deployment. Call it in a transaction. It runs again, unless a newer push of the
 * branch waits, or it was interrupted too often.
 *
 * @returns its new state, or null if it is not interrupted any more: another instance may have superseded it
 */
export function resume(store: Store, id: number): "queued" | "superseded" | "failed" | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "interrupted") return null;
  const newer = findWaiting(store, deployment);
  if (newer !== null) {
    transition(store, deployment, "superseded", { supersededBy: newer });
    return "superseded";
  }
  if (deployment.attempts < mostAttempts) {
    transition(store, deployment, "queued");
    return "queued";
  }
  transition(store, deployment, "failed", { problem: gaveUp(deployment) });
  return "failed";
}

function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql =
    "SELECT max(id) AS id FROM deployments WHERE project = $project AND ref = ? AND id > ? AND state = 'queued'";
  return (store.get(sql, ref, id)?.id as number | null) ?? null;
}

function gaveUp({ attempts }: Deployment): Problem {
  const detail = `The deployment was started ${attempts} times and Hotpush was stopped or killed each time before it ended. See what the script does to the service, then redeliver the push.`;
  return { code: "deployment_gave_up", detail };
}

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
