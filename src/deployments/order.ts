import type { Push } from "../receiver/push.ts";
import type { Deployment } from "./deployment.ts";
import { columns, toDeployment } from "./row.ts";
import type { Store } from "./store.ts";

/**
 * Finds out what a branch points at where it is not the commit of `push`: hosts deliver out of order, so what arrives
 * last is not always the tip.
 *
 * Every push is a step from `before` to `after`. The commit that a branch points at is one more often arrived at than
 * departed from. Where that holds for this push's own commit, it is the newest as far as anybody can know. Where it
 * does not, a later push has departed from it already, and ahead is where the steps from it lead to: the newest push to a
 * commit that can be reached so, or that the remote itself has told of (catch-up), and was not departed from as often.
 * Where there is none, a delivery was missed, and what arrives last is the newest.
 *
 * @returns the deployment that first brought the tip, or null where `push` is the newest
 */
export function findTip(store: Store, push: Deployment): Deployment | null {
  // A push from a commit to itself (the test button of Gitea and its kin) says: the branch is here now.
  if (push.before === push.commit) return null;
  if (arrivals(store, push.ref, push.commit) > departures(store, push.ref, push.commit)) return null;
  const row = store.get(
    `WITH RECURSIVE ahead (reached) AS (
       SELECT ? UNION
       SELECT commit_id FROM deployments WHERE ref = ? AND trigger = 'catch-up' AND before_commit IS NULL UNION
       SELECT commit_id FROM deployments JOIN ahead ON before_commit = reached WHERE ref = ? AND ${isStep}
     )
     SELECT ${columns} FROM deployments AS d
     WHERE ref = ? AND ${isStep} AND commit_id IN (SELECT reached FROM ahead)
       AND (SELECT count(*) FROM deployments WHERE ref = d.ref AND commit_id = d.commit_id AND ${isStep})
         > (SELECT count(*) FROM deployments WHERE ref = d.ref AND before_commit = d.commit_id AND ${isStep})
     ORDER BY id DESC LIMIT 1`,
    push.commit,
    push.ref,
    push.ref,
    push.ref,
  );
  return row ? toDeployment(row) : null;
}

/**
 * Finds the deployment of a push that reported the same step, from one commit to another: two webhooks report each push
 * twice. A step from a commit to itself (a test button) is as good as new each time.
 */
export function findSameStep(store: Store, { ref, before, commit }: Step): Deployment | null {
  if (before === null || before === commit) return null;
  const sql = `SELECT ${columns} FROM deployments WHERE ref = ? AND before_commit = ? AND commit_id = ? AND ${isStep}
    ORDER BY id DESC LIMIT 1`;
  const row = store.get(sql, ref, before, commit);
  return row ? toDeployment(row) : null;
}

/** Whether the steps that are known lead from the commit of a push back to where it came from: it can be made again. */
export function doesLeadBack(store: Store, { ref, before, commit }: Step): boolean {
  const row = store.get(
    `WITH RECURSIVE ahead (reached) AS (
       SELECT ? UNION
       SELECT commit_id FROM deployments JOIN ahead ON before_commit = reached WHERE ref = ? AND ${isStep}
     )
     SELECT 1 FROM ahead WHERE reached = ?`,
    commit,
    ref,
    before,
  );
  return row !== undefined;
}

/** Whether the branch was at the commit of a push before: then its steps alone may not say where the branch is now. */
export function isReturn(store: Store, { id, ref, before, commit }: Deployment): boolean {
  if (before === commit) return false;
  const seen = (column: "commit_id" | "before_commit") =>
    store.get(
      `SELECT 1 FROM deployments WHERE ref = ? AND ${column} = ? AND id <> ? AND ${isStep} LIMIT 1`,
      ref,
      commit,
      id,
    ) !== undefined;
  return seen("commit_id") || seen("before_commit");
}

type Step = Pick<Push, "ref" | "before" | "commit">;

/** Rollbacks and deployments by hand say nothing of where the branch points. */
const isStep = "trigger IN ('push', 'catch-up') AND before_commit IS NOT commit_id";

function arrivals(store: Store, ref: string, commit: string): number {
  return count(store, "commit_id", ref, commit);
}

function departures(store: Store, ref: string, commit: string): number {
  return count(store, "before_commit", ref, commit);
}

function count(store: Store, column: "commit_id" | "before_commit", ref: string, commit: string): number {
  const sql = `SELECT count(*) AS n FROM deployments WHERE ref = ? AND ${column} = ? AND ${isStep}`;
  return Number(store.get(sql, ref, commit)?.n);
}
