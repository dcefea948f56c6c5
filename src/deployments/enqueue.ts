import type { Log } from "../log.ts";
import type { Deployment } from "./deployment.ts";
import { findTip } from "./order.ts";
import { columns, insertDeployment, selectDeployment, selectDeployments, toDeployment } from "./rows.ts";
import { transition } from "./states.ts";
import type { Store } from "./store.ts";

/** Called with the ids of a superseded deployment and of the one that took its place. */
export type OnSuperseded = (id: number, by: number) => void;

/**
 * Decides whether the deployment of a push that was just recorded waits, or is older than what is known already. Call
 * it in a transaction.
 *
 * @returns its state now
 */
export function enqueue(
  store: Store,
  deployment: Deployment,
  onSuperseded: OnSuperseded,
): "queued" | "superseded" {
  const tip = findTip(store, deployment);
  if (tip === null) {
    supersedeWaiting(store, deployment, onSuperseded);
    return "queued";
  }
  const leading = findLeading(store, deployment, tip);
  if (leading === null) redeployTip(store, tip, onSuperseded);
  else supersede(store, deployment, leading, onSuperseded);
  return "superseded";
}

/** Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves. */
export function supersedeWaiting(store: Store, newest: Deployment, onSuperseded: OnSuperseded): void {
  const waits = "WHERE state IN ('queued', 'interrupted') AND ref = ? AND id < ?";
  for (const waiting of selectDeployments(store, waits, newest.ref, newest.id)) {
    supersede(store, waiting, newest.id, onSuperseded);
    const sql = `UPDATE deployments SET queue_order =
      min(queue_order, (SELECT queue_order FROM deployments WHERE id = ?)) WHERE id = ?`;
    store.run(sql, waiting.id, newest.id);
  }
}

/**
 * The deployment that put, or will put, the tip in place: the newest of the branch that was not superseded. What a
 * person has put there instead stays until the next push.
 *
 * @returns its id, or null if an old commit was put there
 */
function findLeading(store: Store, late: Deployment, tip: Deployment): number | null {
  const clauses = "WHERE ref = ? AND id <> ? AND state <> 'superseded' ORDER BY id DESC LIMIT 1";
  const newest = selectDeployment(store, clauses, late.ref, late.id);
  const isRequested = newest?.trigger === "rollback" || newest?.trigger === "manual";
  return newest && (isRequested || [newest.commit, newest.checkedOutCommit].includes(tip.commit))
    ? newest.id
    : null;
}

/**
 * Deploys the tip again, because a push that is now known to be older took its place, and supersedes what waits. The new
 * deployment is a step from the tip to itself, which does not change what is known of the branch.
 */
function redeployTip(store: Store, tip: Deployment, onSuperseded: OnSuperseded): void {
  const again = insertDeployment(store, { ...tip, before: tip.commit });
  supersedeWaiting(store, again, onSuperseded);
  // A redelivery of the tip's push now means the deployment that counts.
  store.run(
    `UPDATE deliveries SET deployment_id = ? WHERE deployment_id IN
       (SELECT id FROM deployments WHERE ref = ? AND commit_id = ? AND id < ?)`,
    ...[again.id, tip.ref, tip.commit, again.id],
  );
}

function supersede(store: Store, deployment: Deployment, by: number, onSuperseded: OnSuperseded): void {
  transition(store, deployment, "superseded", { supersededBy: by });
  onSuperseded(deployment.id, by);
}

export function logSuperseded(log: Log, id: number, by: number): void {
  const fields = { event: "deployment.superseded", deployment: id, by };
  log.info(fields, `Deployment ${id} is superseded by ${by}, a newer push of the branch`);
}

/**
 * Claims the next deployment in the queue, if there is one and none is running. Call it in a transaction. The attempt is
 * counted here, before anything can go wrong with it.
 */
export function claimNext(store: Store): Deployment | null {
  const row = store.get(
    `UPDATE deployments SET state = 'running', attempts = attempts + 1, started_at_ms = ?, finished_at_ms = NULL,
       cancel_asked_at_ms = NULL, cancelled_by = NULL, checked_out_commit = NULL, subject = NULL, author = NULL
     WHERE id = (SELECT id FROM deployments WHERE state = 'queued' ORDER BY queue_order LIMIT 1)
       AND NOT EXISTS (SELECT 1 FROM deployments WHERE state = 'running')
     RETURNING ${columns}`,
    Date.now(),
  );
  return row ? toDeployment(row) : null;
}

/** Puts a claimed deployment back at the front of the queue. It could not be started, which does not count as an attempt. */
export function putBack(store: Store, { id }: Deployment): void {
  store.run(
    `UPDATE deployments SET state = 'queued', attempts = attempts - 1, started_at_ms = NULL,
       queue_order = (SELECT min(queue_order) FROM deployments) - 1 WHERE id = ? AND state = 'running'`,
    id,
  );
}
