import type { Row, Store } from "../platform/sqlite/store.ts";
import type { DeploymentSummary, Push, PushRecord } from "../receiver/push.ts";
import {
  type Deployment,
  findDeployment,
  insertDeployment,
  selectDeployment,
  type Trigger,
} from "./deployment.ts";
import { type Doubt, findNewest } from "./doubts.ts";
import {
  doesLeadBack,
  enqueue,
  findSameStep,
  findTip,
  isReturn,
  type OnSuperseded,
  supersedeWaiting,
} from "./order.ts";
import { noteSkipMention } from "./skips.ts";
import { isFinished, transition } from "./states.ts";

/** The result of a push. `doubt`: what to ask the remote after the sender was answered; null: nothing. */
export type RecordedPush = PushRecord & { readonly doubt: Doubt | null };

/**
 * Records a push as a deployment. Call it in a transaction. The newest push of a branch waits and supersedes what waited
 * before it. A push that is known already, by its bytes or by its step, makes no second deployment; if the first one
 * failed it is queued again, because "Redeliver" means "try again".
 *
 * @param sparesRequests as for `supersedeWaiting`
 */
export function recordPush(
  store: Store,
  push: Push,
  onSuperseded: OnSuperseded = () => {},
  sparesRequests = false,
): RecordedPush {
  const known = store.get("SELECT * FROM deliveries WHERE project = $project AND digest = ?", push.digest);
  if (known) return recordAgain(store, known, doubtOf(push, { isFirst: false }));
  const caughtUp = findCaughtUp(store, push);
  if (caughtUp) return linkTo(store, caughtUp, push);
  const same = findSameStep(store, push);
  if (same) {
    const doubt = doubtOf(push, { isFirst: true, isLikely: doesLeadBack(store, push) });
    return recordAgain(store, remember(store, push, same.id), doubt);
  }
  const deployment = insertDeployment(store, { ...push, trigger: "push", requestedBy: null });
  if (push.mentionsSkip) noteSkipMention(store, deployment.id);
  remember(store, push, deployment.id);
  const state = enqueue(store, deployment, onSuperseded, sparesRequests);
  const doubt = isReturn(store, deployment) ? doubtOf(push, { isFirst: true }) : null;
  return { kind: "accepted", deployment: summary({ ...deployment, state }), doubt };
}

function doubtOf(
  { ref, before, commit }: Push,
  { isFirst, isLikely = false }: { readonly isFirst: boolean; readonly isLikely?: boolean },
): Doubt {
  return { ref, before, commit, isFirst, isLikely };
}

function remember(store: Store, { digest, ref, commit }: Push, deploymentId: number): Row {
  store.run(
    "INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms) VALUES ($project, ?, ?, ?, ?, ?)",
    ...[digest, deploymentId, ref, commit, Date.now()],
  );
  return { deployment_id: deploymentId };
}

function recordAgain(store: Store, delivery: Row, doubt: Doubt): RecordedPush {
  const deployment = findDeployment(store, Number(delivery.deployment_id));
  if (deployment && canRunAgain(store, deployment)) {
    transition(store, deployment, "queued");
    store.run("UPDATE deployments SET attempts = 0, started_at_ms = NULL WHERE id = ?", deployment.id);
    return { kind: "accepted", deployment: summary({ ...deployment, state: "queued" }), doubt: null };
  }
  const isInPlace = findNewest(store, doubt.ref)?.commits.includes(doubt.commit) ?? false;
  const known = deployment
    ? { deployment: summary(deployment), detail: duplicateDetail(deployment.state) }
    : pruned(delivery);
  if (isInPlace) return { kind: "duplicate", ...known, doubt: null };
  return { kind: "duplicate", ...known, detail: `${known.detail} ${asksRemote}`, doubt };
}

/** If a newer push was deployed, running the failed one again would put the branch back. */
function canRunAgain(store: Store, deployment: Deployment): boolean {
  const hasFailed = ["failed", "timed_out", "cancelled"].includes(deployment.state);
  return hasFailed && findTip(store, deployment) === null && !hasNewer(store, deployment);
}

function hasNewer(store: Store, { id, ref }: Deployment): boolean {
  const sql =
    "SELECT 1 FROM deployments WHERE project = $project AND ref = ? AND id > ? AND state NOT IN ('superseded', 'cancelled') LIMIT 1";
  return store.get(sql, ref, id) !== undefined;
}

const asksRemote = "The remote is asked whether the branch is back at this commit; if so, it is deployed.";

/** A delivery whose deployment is pruned from the history: it still must not deploy again. */
function pruned(delivery: Row) {
  const { deployment_id: id, ref, commit_id: commit, last_state: state } = delivery;
  const deployment = { id: Number(id), ref: String(ref), commit: String(commit), state: String(state) };
  return { deployment, detail: duplicateDetail("succeeded") };
}

/** The deployment of this push that catch-up made because it saw the branch before the delivery came. */
function findCaughtUp(store: Store, { ref, commit }: Push): Deployment | null {
  const clauses =
    "WHERE project = $project AND ref = ? AND state NOT IN ('superseded', 'cancelled') ORDER BY id DESC LIMIT 1";
  const newest = selectDeployment(store, clauses, ref);
  const isSame = newest?.trigger === "catch-up" && newest.commit === commit && newest.before === null;
  return isSame && newest.state !== "failed" && newest.state !== "timed_out" ? newest : null;
}

function linkTo(store: Store, deployment: Deployment, push: Push): RecordedPush {
  remember(store, push, deployment.id);
  const sql = "UPDATE deployments SET before_commit = ?, pusher = ? WHERE id = ?";
  store.run(sql, push.before, push.pusher, deployment.id);
  return { kind: "accepted", deployment: summary(deployment), doubt: null };
}

/** What the sender of a push learns about a deployment. */
export function summary({ id, ref, commit, state }: Deployment): DeploymentSummary {
  return { id, ref, commit, state };
}

function duplicateDetail(state: Deployment["state"]): string {
  if (!isFinished(state)) return "This delivery is recorded already and waits or runs.";
  if (state === "superseded") return "A newer push superseded this one, so it is not deployed.";
  if (state === "succeeded") {
    return "Already deployed. To prevent replays, a delivery is deployed only once. To deploy the branch again, push to it, with an empty commit if necessary.";
  }
  if (state === "skipped") {
    return "Its deployment was skipped, because it changes nothing that is deployed, or says so itself. To deploy the branch anyway, run on its server: hotpush deploy";
  }
  return "A newer push came after this one, so it is not tried again.";
}

/** A deployment that no git host asked for. */
export interface DeploymentRequest {
  readonly trigger: Exclude<Trigger, "push">;
  readonly ref: string;
  /** Where the branch came from, if a push said so. */
  readonly before?: string | null;
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
  const unknown = { repository: null, host: null, deliveryId: null, pusher: null };
  const deployment = insertDeployment(store, { before: null, requestedBy: null, ...request, ...unknown });
  supersedeWaiting(store, deployment, onSuperseded);
  return deployment;
}
