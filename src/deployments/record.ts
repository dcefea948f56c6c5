import type { Row, Store } from "#platform/sqlite";
import {
  type Deployment,
  findDeployment,
  insertDeployment,
  selectDeployments,
  type Trigger,
} from "./deployment.ts";
import { findLastGoodOf } from "./history.ts";
import type { DeploymentSummary, Push, PushRecord } from "./push.ts";
import { isFinished, transition } from "./states.ts";

/** Called with the ids of a superseded deployment and of the one that took its place. */
export type OnSuperseded = (id: number, by: number) => void;

/**
 * Records a push as a deployment. Call it in a transaction. Where its branch is, is asked when it starts. The newest push
 * of a branch waits and supersedes those that waited before it. The same delivery again makes no second deployment; if
 * the first one failed it is queued again, because "Redeliver" means "try again".
 */
export function recordPush(store: Store, push: Push, onSuperseded: OnSuperseded = () => {}): PushRecord {
  const known = store.get("SELECT * FROM deliveries WHERE project = $project AND digest = ?", push.digest);
  if (known) return recordAgain(store, known);
  const deployment = insertDeployment(store, { ...push, trigger: "push", requestedBy: null });
  store.run(
    "INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms) VALUES ($project, ?, ?, ?, ?, ?)",
    ...[push.digest, deployment.id, push.ref, push.commit, Date.now()],
  );
  supersedeWaiting(store, deployment, onSuperseded);
  return { kind: "accepted", deployment: summary(deployment) };
}

function recordAgain(store: Store, delivery: Row): PushRecord {
  const deployment = findDeployment(store, Number(delivery.deployment_id));
  if (deployment === null) return { kind: "duplicate", ...pruned(delivery) };
  // A captured delivery must not undo what came after it, such as a roll back.
  const isLast = (findLastGoodOf(store, deployment.ref)?.id ?? 0) < deployment.id;
  if (isLast && ["failed", "timed_out", "cancelled"].includes(deployment.state)) {
    transition(store, deployment, "queued");
    const sql = "UPDATE deployments SET attempts = 0, started_at_ms = NULL, is_asked = 1 WHERE id = ?";
    store.run(sql, deployment.id);
    return { kind: "accepted", deployment: summary({ ...deployment, state: "queued" }) };
  }
  return { kind: "duplicate", deployment: summary(deployment), detail: duplicateDetail(deployment.state) };
}

/** A delivery whose deployment is pruned from the history: it still must not deploy again. */
function pruned(delivery: Row) {
  const { deployment_id: id, ref, commit_id: commit, last_state: state } = delivery;
  const deployment = { id: Number(id), ref: String(ref), commit: String(commit), state: String(state) };
  return { deployment, detail: duplicateDetail("succeeded") };
}

/** What the sender of a push learns about a deployment. */
export function summary({ id, ref, commit, state }: Deployment): DeploymentSummary {
  return { id, ref, commit, state };
}

function duplicateDetail(state: Deployment["state"]): string {
  if (!isFinished(state)) return "This delivery is recorded already and waits or runs.";
  if (state === "failed" || state === "timed_out" || state === "cancelled")
    return "A later deployment of its branch succeeded, so this one is not tried again. To deploy the branch, run on its server: hotpush deploy";
  if (state === "superseded") return "A newer push superseded this one, so it is not deployed by itself.";
  if (state === "skipped") {
    return "Its deployment was skipped: the history says why. To deploy the branch anyway, run on its server: hotpush deploy";
  }
  return "Already deployed. A delivery is deployed only once, but the remote is asked whether the branch has moved. To deploy the same commit again, run on its server: hotpush deploy";
}

/** A deployment that no git host asked for. */
export interface DeploymentRequest {
  readonly trigger: Exclude<Trigger, "push">;
  readonly ref: string;
  readonly commit: string;
  /** Who requested it, as the command reported; null if nobody did, or the command does not know. */
  readonly requestedBy?: string | null;
}

/** Records a deployment that no push asked for, in the same queue. Call it in a transaction. */
export function recordRequest(
  store: Store,
  request: DeploymentRequest,
  onSuperseded: OnSuperseded = () => {},
): Deployment {
  const unknown = { before: null, repository: null, host: null, deliveryId: null, pusher: null };
  const deployment = insertDeployment(store, { requestedBy: null, ...request, ...unknown });
  supersedeWaiting(store, deployment, onSuperseded);
  return deployment;
}

/**
 * Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves. What a person
 * has asked for is superseded only by a person: whoever can send pushes cannot take it back.
 */
function supersedeWaiting(store: Store, newest: Deployment, onSuperseded: OnSuperseded): void {
  const waits = `WHERE state IN ('queued', 'interrupted') AND project = $project AND ref = ? AND id <> ?
    ${isByPerson(newest) ? "" : `AND ${isUnasked}`}`;
  for (const waiting of selectDeployments(store, waits, newest.ref, newest.id)) {
    transition(store, waiting, "superseded", { supersededBy: newest.id });
    onSuperseded(waiting.id, newest.id);
    const sql = `UPDATE deployments SET queue_order =
      min(queue_order, (SELECT queue_order FROM deployments WHERE id = ?)) WHERE id = ?`;
    store.run(sql, waiting.id, newest.id);
  }
}

function isByPerson({ trigger }: Deployment): boolean {
  return trigger === "manual" || trigger === "rollback";
}

/** SQL: no person has asked for the deployment. */
export const isUnasked = "trigger IN ('push', 'catch-up') AND NOT is_asked";
