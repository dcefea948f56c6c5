import type { Deployment } from "./deployment.ts";
import { insertDeployment } from "./insert.ts";
import { move } from "./move.ts";
import { findTip } from "./order.ts";
import { columns, toDeployment } from "./row.ts";
import type { Store } from "./store.ts";

/** Told of each deployment that gives way to another, by their ids. */
export type OnSuperseded = (id: number, by: number) => void;

/**
 * Decides whether the deployment of a push just recorded waits, or was overtaken before it arrived; to be called in a
 * transaction.
 *
 * @returns the state it has now
 */
export function settlePlace(
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
  if (leading === null) leadAgain(store, tip, onSuperseded);
  else supersede(store, deployment, leading, onSuperseded);
  return "superseded";
}

/** Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves. */
export function supersedeWaiting(store: Store, newest: Deployment, onSuperseded: OnSuperseded): void {
  const waiting = store.all(
    `SELECT ${columns}, queue_order FROM deployments WHERE state IN ('queued', 'interrupted') AND ref = ? AND id < ?`,
    newest.ref,
    newest.id,
  );
  for (const row of waiting) {
    supersede(store, toDeployment(row), newest.id, onSuperseded);
    const sql = "UPDATE deployments SET queue_order = min(queue_order, ?) WHERE id = ?";
    store.run(sql, Number(row.queue_order), newest.id);
  }
}

/**
 * The deployment that put, or will put, the tip in place: the newest of the branch that was not superseded. Where a
 * person has put something else there, that stays until the next push. Null where something old was put there.
 */
function findLeading(store: Store, late: Deployment, tip: Deployment): number | null {
  const row = store.get(
    `SELECT ${columns} FROM deployments WHERE ref = ? AND id <> ? AND state <> 'superseded' ORDER BY id DESC LIMIT 1`,
    late.ref,
    late.id,
  );
  const newest = row ? toDeployment(row) : null;
  const isAsWished = newest?.trigger === "rollback" || newest?.trigger === "manual";
  return newest && (isAsWished || [newest.commit, newest.checkedOutCommit].includes(tip.commit))
    ? newest.id
    : null;
}

/**
 * Deploys the tip once more, instead of all that waits, because a push that is now known to be older took its place.
 * The new deployment is a step from the tip to itself, which changes nothing in the reckoning of where the branch is.
 */
function leadAgain(store: Store, tip: Deployment, onSuperseded: OnSuperseded): void {
  const again = insertDeployment(store, { ...tip, before: tip.commit });
  supersedeWaiting(store, again, onSuperseded);
  // Whoever asks the host to redeliver the push of the tip means the deployment that counts now.
  store.run(
    `UPDATE deliveries SET deployment_id = ? WHERE deployment_id IN
       (SELECT id FROM deployments WHERE ref = ? AND commit_id = ? AND id < ?)`,
    again.id,
    tip.ref,
    tip.commit,
    again.id,
  );
}

function supersede(store: Store, deployment: Deployment, by: number, onSuperseded: OnSuperseded): void {
  move(store, deployment, "superseded", { supersededBy: by });
  onSuperseded(deployment.id, by);
}
