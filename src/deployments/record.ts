import type { Row, Store } from "#platform/sqlite";
import { type Deployment, type Ending, isFinished, type Trigger } from "./deployment.ts";
import { findLastGood } from "./history.ts";
import { branchOf, type DeploymentSummary, type Push, type PushRecord } from "./push.ts";
import {
  findDeployment,
  findPause,
  hasDeployment,
  insertDeployment,
  isAfter,
  isUnasked,
  selectDeployments,
  transition,
} from "./store.ts";

/**
 * Records a push as a deployment. Call it in a transaction. Where its branch is, is asked when it starts. The newest push
 * of a branch waits and supersedes those that waited before it. The same delivery again makes no second deployment; if
 * the first one failed it is queued again, because "Redeliver" means "try again".
 */
export function recordPush(store: Store, push: Push): PushRecord {
  const known = store.get("SELECT * FROM deliveries WHERE project = $project AND digest = ?", push.digest);
  if (known) return recordAgain(store, known);
  const deployment = insertDeployment(store, { ...push, trigger: "push" });
  const sql = `INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms)
    VALUES ($project, ?, ?, ?, ?, ?)`;
  store.run(sql, push.digest, deployment.id, push.ref, push.commit, Date.now());
  supersedeWaiting(store, deployment);
  return accepted(store, deployment);
}

function accepted(store: Store, deployment: Deployment): PushRecord {
  const detail = "The queue of this project is paused. The push is recorded, and waits until hotpush resume.";
  return { kind: "accepted", deployment: summary(deployment), ...(findPause(store) && { detail }) };
}

function recordAgain(store: Store, delivery: Row): PushRecord {
  const deployment = findDeployment(store, Number(delivery.deployment_id));
  if (deployment === null) {
    // It is pruned from the history, and still must not be deployed again.
    const { deployment_id: id, ref, commit_id: commit, last_state: state } = delivery;
    const known = { id: Number(id), ref: String(ref), commit: String(commit), state: String(state) };
    const again = `It is too old to be tried again. To deploy the branch, run on its server: hotpush deploy ${branchOf(known.ref)}`;
    const detail = state === "succeeded" ? duplicateDetail(state) : again;
    return { kind: "duplicate", deployment: known, detail };
  }
  const refusal = whyNotAgain(store, deployment);
  if (refusal !== null) return { kind: "duplicate", deployment: summary(deployment), detail: refusal };
  const asked = "asked_after = queue_order, asked_attempts = attempts, started_at_ms = NULL";
  store.run(`UPDATE deployments SET ${asked} WHERE id = ?`, deployment.id);
  transition(store, deployment, "queued");
  return accepted(store, { ...deployment, state: "queued" });
}

/** Whoever has captured a delivery can send it again, so "try again" has an end. */
const mostAttempts = 10;

/** Why a delivery that comes again is not tried again, or null. */
function whyNotAgain(store: Store, { id, ref, state, attempts }: Deployment): string | null {
  if (!["failed", "timed_out", "cancelled"].includes(state)) return duplicateDetail(state);
  const toDeploy = `To deploy the branch, run on its server: hotpush deploy ${branchOf(ref)}`;
  if (isTakenBack(store, id)) return `Its version was live and was taken back. ${toDeploy}`;
  if (attempts >= mostAttempts) return `It was started ${attempts} times. ${toDeploy}`;
  // A captured delivery must not undo what came after it, such as a roll back.
  const last = findLastGood(store, [ref]);
  if (hasDeployment(store, `id = ? AND ${isAfter("queue_order")}`, id, last?.id ?? null)) return null;
  return `A later deployment of its branch succeeded. ${toDeploy}`;
}

/** What the sender of a push learns about a deployment. */
export function summary({ id, ref, commit, state }: Deployment): DeploymentSummary {
  return { id, ref, commit, state };
}

function duplicateDetail(state: Deployment["state"]): string {
  if (!isFinished(state)) return "This delivery is recorded already and waits or runs.";
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
  /** The images that it is for, as name@digest. */
  readonly images?: readonly string[];
}

/** Records a deployment that no push asked for, in the same queue. Call it in a transaction. */
export function recordRequest(store: Store, request: DeploymentRequest): Deployment {
  const deployment = insertDeployment(store, request);
  supersedeWaiting(store, deployment);
  return deployment;
}

/**
 * Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves. What a person
 * has asked for is superseded only by a person: whoever can send pushes cannot take it back. New images supersede nothing: they
 * are for the commit that is live.
 */
function supersedeWaiting(store: Store, newest: Deployment): void {
  if (newest.trigger === "image") return;
  const isByPerson = newest.trigger === "manual" || newest.trigger === "rollback";
  const waits = `WHERE state IN ('queued', 'interrupted') AND project = $project AND ref = ? AND id <> ?
    ${isByPerson ? "" : `AND ${isUnasked}`}`;
  for (const waiting of selectDeployments(store, waits, newest.ref, newest.id)) {
    const sql = `UPDATE deployments SET queue_order =
      min(queue_order, (SELECT queue_order FROM deployments WHERE id = ?)) WHERE id = ?`;
    store.run(sql, waiting.id, newest.id);
    transition(store, waiting, "superseded", { supersededBy: newest.id });
  }
}

/** Records how a running deployment ended. Call it in a transaction. @returns the ending as it is recorded */
export function settle(store: Store, { id }: Deployment, ending: Ending): Ending {
  const isUnwanted = isCancelRequested(store, id) || isTakenBack(store, id);
  const isDone = ending.state !== "interrupted" && ending.state !== "skipped";
  const { state, ...details } = isUnwanted && !isDone ? cancelledEnding : ending;
  transition(store, { id, state: "running" }, state, details);
  return { state, ...details };
}

/** A deployment that was interrupted this often since it was asked for is given up: it may be what takes the service down. */
const mostInterruptions = 3;

/**
 * Decides what happens to an interrupted deployment. Call it in a transaction. It runs again, unless a newer push of the
 * branch waits, it was interrupted too often, or another instance has superseded it.
 *
 * @returns how it ended, if it was given up
 */
export function resume(store: Store, id: number): Ending | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "interrupted") return null;
  const supersededBy = findWaiting(store, deployment);
  if (supersededBy !== null) {
    transition(store, deployment, "superseded", { supersededBy });
    return null;
  }
  const sql = "SELECT attempts - asked_attempts AS count FROM deployments WHERE id = ?";
  const count = Number(store.get(sql, id)?.count);
  const ending = count < mostInterruptions ? null : gaveUp(count);
  transition(store, deployment, ending?.state ?? "queued", ending ?? {});
  return ending;
}

/** What a person has asked for runs again in any case. */
function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql = `SELECT max(id) AS id FROM deployments WHERE project = $project AND ref = ? AND id > ? AND state = 'queued'
    AND EXISTS (SELECT 1 FROM deployments WHERE id = ? AND ${isUnasked})`;
  return (store.get(sql, ref, id, id)?.id as number | null) ?? null;
}

function gaveUp(count: number): Ending {
  const detail = `The deployment was started ${count} times and Hotpush was stopped or killed each time before it ended. If its script replaces the container of Hotpush itself, leave that service out, as hotpush rollout does with compose; on a Swarm, give it a stack of its own. Then redeliver the push.`;
  return { state: "failed", exitCode: null, problem: { code: "deployment_gave_up", detail } };
}

/**
 * Cancels a deployment that waits in the queue. Call it in a transaction.
 *
 * @param by who requested it, as the command reported
 * @returns null if it does not wait; if it runs, the queue has to end it
 */
export function cancelQueued(store: Store, id: number, by: string | null): Deployment | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "queued") return null;
  transition(store, deployment, "cancelled");
  store.run("UPDATE deployments SET cancelled_by = ? WHERE id = ?", by, id);
  return deployment;
}

/** The ending of a run that somebody cancelled. */
export const cancelledEnding: Ending = { state: "cancelled", exitCode: null, problem: null };

/**
 * Records that a running deployment is being cancelled, before its script is asked to end: if the service dies first,
 * the script is not run again.
 */
export function noteCancel(store: Store, id: number, by: string | null): void {
  const sql =
    "UPDATE deployments SET cancel_asked_at_ms = ?, cancelled_by = coalesce(cancelled_by, ?), is_taken_back = max(is_taken_back, live_at_ms IS NOT NULL) WHERE id = ?";
  store.transaction(() => store.run(sql, Date.now(), by, id));
}

/** Records that a person, or the guard, takes the version of a deployment back: only a person deploys it again. Call it in a transaction. */
export function takeBack(store: Store, id: number): void {
  store.run("UPDATE deployments SET is_taken_back = 1 WHERE id = ?", id);
}

/** Whether a person, or the guard, has taken the version of a deployment back. */
export function isTakenBack(store: Store, id: number): boolean {
  return hasDeployment(store, "id = ? AND is_taken_back", id);
}

/** Whether somebody cancelled a deployment since its last start. */
export function isCancelRequested(store: Store, id: number): boolean {
  return hasDeployment(store, "id = ? AND cancel_asked_at_ms IS NOT NULL", id);
}
