import type { Deployment } from "./deployment.ts";
import { columns, toDeployment } from "./row.ts";
import type { Store } from "./store.ts";

/** A deployment that is interrupted this often is given up: it may be what brings the service down. */
export const mostAttempts = 3;

/**
 * Takes the deployment whose turn it is, if there is one and none is running; to be called in a transaction. The
 * attempt is counted here, before anything of it can go wrong.
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

/** Puts a claimed deployment back in front of the queue: it could not be started, which is no attempt. */
export function putBack(store: Store, { id }: Deployment): void {
  store.run(
    `UPDATE deployments SET state = 'queued', attempts = attempts - 1, started_at_ms = NULL,
       queue_order = (SELECT min(queue_order) FROM deployments) - 1 WHERE id = ? AND state = 'running'`,
    id,
  );
}

/** The deployments that were left running or interrupted by a service that is gone, oldest first. */
export function findUnfinished(store: Store): readonly Deployment[] {
  const sql = `SELECT ${columns} FROM deployments WHERE state IN ('running', 'interrupted') ORDER BY queue_order`;
  return store.all(sql).map(toDeployment);
}

/** The run that is under way, as its deployment's id and attempt, or null. */
export function findRunKey(store: Store): string | null {
  const row = store.get("SELECT id, attempts FROM deployments WHERE state = 'running'");
  return row ? `${row.id} ${row.attempts}` : null;
}
