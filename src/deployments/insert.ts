import type { Deployment } from "./deployment.ts";
import { lastInQueue } from "./move.ts";
import { columns, toDeployment } from "./row.ts";
import type { Store } from "./store.ts";

export type NewDeployment = Pick<
  Deployment,
  "trigger" | "ref" | "before" | "commit" | "repository" | "host" | "deliveryId" | "pusher" | "requestedBy"
>;

/** Adds a deployment behind all that is queued; to be called in a transaction. */
export function insertDeployment(store: Store, deployment: NewDeployment): Deployment {
  const { trigger, ref, before, commit, repository, host, deliveryId, pusher, requestedBy } = deployment;
  const row = store.get(
    `INSERT INTO deployments (trigger, ref, before_commit, commit_id, repository, host, delivery_id, pusher,
       requested_by, state, queue_order, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ${lastInQueue}, ?) RETURNING ${columns}`,
    trigger,
    ref,
    before,
    commit,
    repository,
    host,
    deliveryId,
    pusher,
    requestedBy,
    Date.now(),
  );
  if (!row) throw new Error("the new deployment was not inserted");
  return toDeployment(row);
}

/**
 * Makes the number of the next deployment higher than `last`. A database that was put aside leaves logs and runs behind,
 * whose numbers no new deployment may have.
 */
export function numberAfter(store: Store, last: number): void {
  const sql = "SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'deployments'";
  if (Number(store.get(sql)?.last) >= last) return;
  store.transaction(() => {
    store.run("DELETE FROM sqlite_sequence WHERE name = 'deployments'");
    store.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('deployments', ?)", last);
  });
}
