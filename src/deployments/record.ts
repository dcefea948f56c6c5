import type { Push } from "../receiver/push.ts";
import { findNewest } from "./believe-head.ts";
import type { Deployment, Trigger } from "./deployment.ts";
import type { Doubt } from "./doubts.ts";
import { insertDeployment } from "./insert.ts";
import { move } from "./move.ts";
import { doesLeadBack, findSameStep, findTip, isReturn } from "./order.ts";
import { type OnSuperseded, settlePlace, supersedeWaiting } from "./place.ts";
import { columns, toDeployment } from "./row.ts";
import { isFinished } from "./states.ts";
import type { Row, Store } from "./store.ts";

/** What became of a push. `doubt`: what is to be asked of the remote, after the answer to the sender; null: nothing. */
export type Recorded = { readonly deployment: RecordedDeployment; readonly doubt: Doubt | null } & (
  | { readonly kind: "accepted" }
  | { readonly kind: "duplicate"; readonly detail: string }
);

export type RecordedDeployment = Pick<Deployment, "id" | "ref" | "commit"> & { readonly state: string };

/** A deployment that is asked for by somebody other than a git host. */
export interface Wish {
  readonly trigger: Exclude<Trigger, "push">;
  readonly ref: string;
  /** Where the branch came from, if a push said so. */
  readonly before?: string | null;
  readonly commit: string;
  /** Who asked for it, as the command reported; null if nobody did, or the command does not know. */
  readonly requestedBy?: string | null;
}

/**
 * Records a push as a deployment; to be called in a transaction. The newest push of a branch waits, and what waited
 * before it is superseded. A push that is known already, by its bytes or by its step, makes no second deployment; if the
 * first one failed it is queued again, because "Redeliver" means "try again".
 */
export function recordPush(store: Store, push: Push, onSuperseded: OnSuperseded = () => {}): Recorded {
  const known = store.get("SELECT * FROM deliveries WHERE digest = ?", push.digest);
  if (known) return recordAgain(store, known, { ...stepOf(push), isFirst: false, isLikely: false });
  const caughtUp = findCaughtUp(store, push);
  if (caughtUp) return linkTo(store, caughtUp, push);
  const same = findSameStep(store, push);
  if (same) {
    const isLikely = doesLeadBack(store, push);
    return recordAgain(store, remember(store, push, same.id), { ...stepOf(push), isFirst: true, isLikely });
  }
  const deployment = insertDeployment(store, { ...push, trigger: "push", requestedBy: null });
  remember(store, push, deployment.id);
  const state = settlePlace(store, deployment, onSuperseded);
  const doubt = isReturn(store, deployment) ? { ...stepOf(push), isFirst: true, isLikely: false } : null;
  return { kind: "accepted", deployment: summary({ ...deployment, state }), doubt };
}

/** Records a deployment that no push asked for, in the same queue; to be called in a transaction. */
export function recordWish(store: Store, wish: Wish, onSuperseded: OnSuperseded = () => {}): Deployment {
  const unsaid = { repository: null, host: null, deliveryId: null, pusher: null };
  const deployment = insertDeployment(store, { before: null, requestedBy: null, ...wish, ...unsaid });
  supersedeWaiting(store, deployment, onSuperseded);
  return deployment;
}

/** @returns the deployment with `id`, or null where it was never made or is pruned */
export function findDeployment(store: Store, id: number): Deployment | null {
  const row = store.get(`SELECT ${columns} FROM deployments WHERE id = ?`, id);
  return row ? toDeployment(row) : null;
}

function stepOf({ ref, before, commit }: Push) {
  return { ref, before, commit };
}

function remember(store: Store, { digest, ref, commit }: Push, deploymentId: number): Row {
  store.run(
    "INSERT INTO deliveries (digest, deployment_id, ref, commit_id, received_at_ms) VALUES (?, ?, ?, ?, ?)",
    digest,
    deploymentId,
    ref,
    commit,
    Date.now(),
  );
  return { deployment_id: deploymentId };
}

function recordAgain(store: Store, delivery: Row, doubt: Doubt): Recorded {
  const deployment = findDeployment(store, Number(delivery.deployment_id));
  if (deployment && canRunAgain(store, deployment)) {
    move(store, deployment, "queued");
    store.run("UPDATE deployments SET attempts = 0, started_at_ms = NULL WHERE id = ?", deployment.id);
    return { kind: "accepted", deployment: summary({ ...deployment, state: "queued" }), doubt: null };
  }
  const isInPlace = findNewest(store, doubt.ref)?.commits.includes(doubt.commit) ?? false;
  const known = deployment
    ? { deployment: summary(deployment), detail: duplicateDetail(deployment.state) }
    : forgotten(delivery);
  if (isInPlace) return { kind: "duplicate", ...known, doubt: null };
  return { kind: "duplicate", ...known, detail: `${known.detail} ${asksRemote}`, doubt };
}

/** Trying an older one again would put the branch back. */
function canRunAgain(store: Store, deployment: Deployment): boolean {
  const hasFailed = ["failed", "timed_out", "cancelled"].includes(deployment.state);
  return hasFailed && findTip(store, deployment) === null && findNewer(store, deployment) === null;
}

const asksRemote = "The remote is asked whether the branch is back at this commit; if so, it is deployed.";

/** A delivery whose deployment is pruned from the history: it still must not deploy again. */
function forgotten(delivery: Row) {
  const id = Number(delivery.deployment_id);
  const state = String(delivery.last_state);
  const deployment = { id, ref: String(delivery.ref), commit: String(delivery.commit_id), state };
  return { deployment, detail: duplicateDetail("succeeded") };
}

/** The deployment by which catch-up, seeing the branch before its delivery came, has done what this push asks for. */
function findCaughtUp(store: Store, { ref, commit }: Push): Deployment | null {
  const row = store.get(
    `SELECT ${columns} FROM deployments WHERE ref = ? AND state NOT IN ('superseded', 'cancelled') ORDER BY id DESC LIMIT 1`,
    ref,
  );
  const newest = row ? toDeployment(row) : null;
  const isSame = newest?.trigger === "catch-up" && newest.commit === commit && newest.before === null;
  return isSame && newest.state !== "failed" && newest.state !== "timed_out" ? newest : null;
}

function linkTo(store: Store, deployment: Deployment, push: Push): Recorded {
  remember(store, push, deployment.id);
  const sql = "UPDATE deployments SET before_commit = ?, pusher = ? WHERE id = ?";
  store.run(sql, push.before, push.pusher, deployment.id);
  return { kind: "accepted", deployment: summary(deployment), doubt: null };
}

/** A newer deployment of the same branch. */
function findNewer(store: Store, { id, ref }: Deployment): number | null {
  const sql =
    "SELECT max(id) AS id FROM deployments WHERE ref = ? AND id > ? AND state NOT IN ('superseded', 'cancelled')";
  return (store.get(sql, ref, id)?.id as number | null) ?? null;
}

function summary({ id, ref, commit, state }: Deployment): RecordedDeployment {
  return { id, ref, commit, state };
}

function duplicateDetail(state: string): string {
  if (!isFinished(state as Deployment["state"]))
    return "This delivery is recorded already and its turn comes.";
  if (state === "superseded") return "A newer push took the place of this one, so it is not deployed.";
  if (state === "succeeded") {
    return "This delivery was deployed already and never is twice, so that a captured one cannot roll you back. To deploy the branch again, push to it, with an empty commit if need be.";
  }
  return "A newer push came after this one, so it is not tried again.";
}
