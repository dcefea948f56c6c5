import type { Store } from "../platform/sqlite/store.ts";
import type { Push } from "../receiver/push.ts";
import { type Deployment, insertDeployment, selectDeployment, selectDeployments } from "./deployment.ts";
import { transition } from "./states.ts";

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
  sparesRequests: boolean,
): "queued" | "superseded" {
  const tip = findTip(store, deployment);
  if (tip === null) {
    supersedeWaiting(store, deployment, onSuperseded, sparesRequests);
    return "queued";
  }
  const leading = findLeading(store, deployment, tip);
  if (leading === null) redeployTip(store, tip, onSuperseded, sparesRequests);
  else supersede(store, deployment, leading, onSuperseded);
  return "superseded";
}

/**
 * Supersedes what waits for the same branch, and gives `newest` the first of their places: no branch starves.
 *
 * @param sparesRequests leaves what an operator or catch-up has requested: a forged push must not replace it
 */
export function supersedeWaiting(
  store: Store,
  newest: Deployment,
  onSuperseded: OnSuperseded,
  sparesRequests = false,
): void {
  const which = sparesRequests ? "AND trigger = 'push'" : "";
  const waits = `WHERE state IN ('queued', 'interrupted') AND project = $project AND ref = ? AND id < ? ${which}`;
  for (const waiting of selectDeployments(store, waits, newest.ref, newest.id)) {
    supersede(store, waiting, newest.id, onSuperseded);
    const sql = `UPDATE deployments SET queue_order =
      min(queue_order, (SELECT queue_order FROM deployments WHERE id = ?)) WHERE id = ?`;
    store.run(sql, waiting.id, newest.id);
  }
}

/**
 * The deployment that put, or will put, the tip in place: the newest of the branch that was not superseded. A
 * version that a person has put there instead stays until the next push.
 *
 * @returns its id; null if an old commit was put there, or if it was skipped before anybody knew of `late`
 */
function findLeading(store: Store, late: Deployment, tip: Deployment): number | null {
  const clauses =
    "WHERE project = $project AND ref = ? AND id <> ? AND state <> 'superseded' ORDER BY id DESC LIMIT 1";
  const newest = selectDeployment(store, clauses, late.ref, late.id);
  const isRequested = newest?.trigger === "rollback" || newest?.trigger === "manual";
  if (newest?.state === "skipped") return null;
  return newest && (isRequested || [newest.commit, newest.checkedOutCommit].includes(tip.commit))
    ? newest.id
    : null;
}

/**
 * Deploys the tip again, because a push that is now known to be older took its place, and supersedes what waits. The new
 * deployment is a step from the tip to itself, which does not change what is known of the branch.
 */
function redeployTip(
  store: Store,
  tip: Deployment,
  onSuperseded: OnSuperseded,
  sparesRequests: boolean,
): void {
  const again = insertDeployment(store, { ...tip, before: tip.commit });
  supersedeWaiting(store, again, onSuperseded, sparesRequests);
  // A redelivery of the tip's push now means the deployment that counts. Nobody redelivers more of one commit than that.
  store.run(
    `UPDATE deliveries SET deployment_id = ? WHERE project = $project AND digest IN (
       SELECT digest FROM deliveries WHERE deployment_id IN
         (SELECT id FROM deployments WHERE project = $project AND ref = ? AND commit_id = ? AND id < ?) LIMIT 100)`,
    ...[again.id, tip.ref, tip.commit, again.id],
  );
}

function supersede(store: Store, deployment: Deployment, by: number, onSuperseded: OnSuperseded): void {
  transition(store, deployment, "superseded", { supersededBy: by });
  onSuperseded(deployment.id, by);
}

/**
 * Finds the commit that a branch points at, if that is not the commit of `push`. Git hosts deliver out of order, so the
 * push that arrives last is not always the newest.
 *
 * Every push is a step from `before` to `commit`. A branch points at a commit that was arrived at more often than
 * departed from. If that holds for the commit of `push`, nothing newer is known. Otherwise a later push has departed
 * from it already: the tip is the commit of the newest push that the steps lead to from there, or from what the remote
 * itself reported (catch-up), and that was not departed from as often. If there is none, a delivery was missed, and
 * `push` is the newest.
 *
 * @returns the deployment that first brought the tip, or null if `push` is the newest
 */
export function findTip(store: Store, { ref, before, commit }: Deployment): Deployment | null {
  // A push from a commit to itself (the test button of Gitea and its kin) says: the branch is here now.
  if (before === commit) return null;
  if (count(store, "commit_id", ref, commit) > count(store, "before_commit", ref, commit)) return null;
  return selectDeployment(
    store,
    // Each commit is counted once: a flood of pushes that meet in one commit must not make this slow.
    `WHERE project = $project AND ref = ? AND ${isStep} AND commit_id IN (
       WITH RECURSIVE ahead (reached) AS (
         SELECT ? UNION
         SELECT commit_id FROM deployments WHERE project = $project AND ref = ? AND trigger = 'catch-up' AND before_commit IS NULL UNION
         SELECT commit_id FROM ahead CROSS JOIN deployments ON before_commit = reached WHERE project = $project AND ref = ? AND ${isStep}
       ) SELECT reached FROM ahead WHERE
         (SELECT count(*) FROM deployments WHERE project = $project AND ref = ? AND commit_id = reached AND ${isStep})
         > (SELECT count(*) FROM deployments WHERE project = $project AND ref = ? AND before_commit = reached AND ${isStep}))
     ORDER BY id DESC LIMIT 1`,
    ...[ref, commit, ref, ref, ref, ref],
  );
}

/**
 * Finds the deployment of a push that reported the same step, from one commit to another: two webhooks report each push
 * twice. A step from a commit to itself (a test button) counts as new each time.
 */
export function findSameStep(store: Store, { ref, before, commit }: PushStep): Deployment | null {
  if (before === null || before === commit) return null;
  const clauses = `WHERE project = $project AND ref = ? AND before_commit = ? AND commit_id = ? AND ${isStep} ORDER BY id DESC LIMIT 1`;
  return selectDeployment(store, clauses, ref, before, commit);
}

/** Whether the known steps lead from the commit of a push back to where it came from: then it can be made again. */
export function doesLeadBack(store: Store, { ref, before, commit }: PushStep): boolean {
  const row = store.get(
    `WITH RECURSIVE ahead (reached) AS (
       SELECT ? UNION
       SELECT commit_id FROM ahead CROSS JOIN deployments ON before_commit = reached WHERE project = $project AND ref = ? AND ${isStep}
     )
     SELECT 1 FROM ahead WHERE reached = ?`,
    ...[commit, ref, before],
  );
  return row !== undefined;
}

/** Whether the branch was at the commit of a push before: then its steps alone may not say where the branch is now. */
export function isReturn(store: Store, { id, ref, before, commit }: Deployment): boolean {
  if (before === commit) return false;
  const isSeen = (column: "commit_id" | "before_commit") =>
    store.get(
      `SELECT 1 FROM deployments WHERE project = $project AND ref = ? AND ${column} = ? AND id <> ? AND ${isStep} LIMIT 1`,
      ...[ref, commit, id],
    ) !== undefined;
  return isSeen("commit_id") || isSeen("before_commit");
}

type PushStep = Pick<Push, "ref" | "before" | "commit">;

/** Roll backs and deployments by hand do not say where the branch points. */
const isStep = "trigger IN ('push', 'catch-up') AND before_commit IS NOT commit_id";

/** How often the branch arrived at a commit (`commit_id`), or departed from it (`before_commit`). */
function count(store: Store, column: "commit_id" | "before_commit", ref: string, commit: string): number {
  const sql = `SELECT count(*) AS n FROM deployments WHERE project = $project AND ref = ? AND ${column} = ? AND ${isStep}`;
  return Number(store.get(sql, ref, commit)?.n);
}
