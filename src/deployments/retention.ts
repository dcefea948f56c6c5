import type { Store } from "./store.ts";

const deploymentsKept = 1_000;
/** A captured delivery stays known, and so harmless, for this long at least. */
const deliveriesKept = 10_000;
const deliveriesKeptMs = 90 * 24 * 3_600_000;

/** How much is forgotten at once: a flood of pushes must not make its end a matter of seconds. */
const forgottenAtOnce = 500;

/**
 * Forgets the oldest of a long history, a part of it at a time; to be called in a transaction. What has not finished is
 * never forgotten.
 */
export function pruneHistory(store: Store): void {
  const oldest = store.get(
    "SELECT id FROM deployments ORDER BY id DESC LIMIT 1 OFFSET ?",
    deploymentsKept - 1,
  );
  if (oldest) forgetDeploymentsBefore(store, Number(oldest.id));
  store.run(
    `DELETE FROM deliveries WHERE digest IN (
       SELECT digest FROM deliveries WHERE received_at_ms < ? AND received_at_ms <
         (SELECT received_at_ms FROM deliveries ORDER BY received_at_ms DESC LIMIT 1 OFFSET ?)
       ORDER BY received_at_ms LIMIT ${forgottenAtOnce})`,
    Date.now() - deliveriesKeptMs,
    deliveriesKept - 1,
  );
}

function forgetDeploymentsBefore(store: Store, id: number): void {
  const old = `SELECT id FROM deployments WHERE id < ? AND state NOT IN ('queued', 'running', 'interrupted')
    ORDER BY id LIMIT ${forgottenAtOnce}`;
  store.run(
    `UPDATE deliveries SET last_state = (SELECT state FROM deployments WHERE id = deployment_id)
     WHERE deployment_id IN (${old})`,
    id,
  );
  store.run(`DELETE FROM steps WHERE deployment_id IN (${old})`, id);
  store.run(`DELETE FROM deployments WHERE id IN (${old})`, id);
}
