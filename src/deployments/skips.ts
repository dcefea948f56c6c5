import type { Store } from "../platform/sqlite/store.ts";
import { recordSource } from "./checked-out.ts";
import type { Deployment, Skip, SkipRules } from "./deployment.ts";
import { findLastGood } from "./history.ts";
import { putBack, transition } from "./states.ts";

/** Notes that a payload has `[skip deploy]` somewhere. Call it in a transaction. */
export function noteSkipMention(store: Store, id: number): void {
  store.run("UPDATE deployments SET mentions_skip = 1 WHERE id = ?", id);
}

/**
 * Decides which rules may skip a deployment. None may skip the request of a person, or a push that has taken the place
 * of such a request. The changes of a push that it has superseded must be deployed with it, whatever its own commit says.
 * After a script that failed, nobody knows what is live: then a comparison says nothing.
 *
 * @param isLikely whether to look closely although its payload does not have `[skip deploy]`
 * @returns null if it must be deployed in any case, as always before there is a good version
 */
export function findSkipRules(store: Store, deployment: Deployment, isLikely: boolean): SkipRules | null {
  const { id, trigger } = deployment;
  if (trigger !== "push" && trigger !== "catch-up") return null;
  // Nearly all deployments end here.
  if (!isLikely && trigger === "push" && !mentionsSkip(store, id)) return null;
  const live = findLastGood(store);
  const replaced = listReplaced(store, id);
  if (live === null || replaced.includes("manual") || replaced.includes("rollback")) return null;
  const known = listKnown(store, deployment);
  return { live, known, byMarker: replaced.length === 0, byPaths: !hasTriedSince(store, live, id) };
}

/** Of the newest deployments: an older one is contained in them, unless somebody has rewritten the branch since. */
const mostKnown = 100;

function listKnown(store: Store, { id, ref }: Deployment): readonly string[] {
  const sql = `SELECT commit_id, checked_out_commit FROM deployments
    WHERE project = $project AND ref = ? AND id < ? ORDER BY id DESC LIMIT ?`;
  const rows = store.all(sql, ref, id, mostKnown);
  const commits = rows.flatMap(({ commit_id, checked_out_commit }) => [commit_id, checked_out_commit]);
  return [...new Set(commits.filter((commit) => typeof commit === "string"))];
}

/** The triggers of what a deployment has taken the place of, directly or not. */
function listReplaced(store: Store, id: number): readonly string[] {
  const sql = `SELECT id, trigger, superseded_by FROM deployments
    WHERE project = $project AND state = 'superseded' ORDER BY superseded_by DESC`;
  const ids = new Set([id]);
  const rows = store.all(sql).filter((row) => ids.has(Number(row.superseded_by)) && ids.add(Number(row.id)));
  return rows.map(({ trigger }) => String(trigger));
}

function mentionsSkip(store: Store, id: number): boolean {
  return store.get("SELECT 1 FROM deployments WHERE id = ? AND mentions_skip", id) !== undefined;
}

/** Whether a script was started since the last good version, and did not succeed; the own attempt begins now. */
function hasTriedSince(store: Store, live: Deployment, own: number): boolean {
  const sql = `SELECT 1 FROM deployments WHERE project = $project AND id > ? AND attempts > (id = ?)
    AND state NOT IN ('succeeded', 'skipped') LIMIT 1`;
  return store.get(sql, live.id, own) !== undefined;
}

/**
 * Records that a running deployment was skipped, unless something has changed since that was decided: then it goes back
 * to the queue. Call it in a transaction.
 *
 * @returns whether it was skipped
 */
export function settleSkipped(store: Store, deployment: Deployment, { rule, reason, source }: Skip): boolean {
  if (!findSkipRules(store, deployment, true)?.[rule]) {
    putBack(store, deployment);
    return false;
  }
  if (source !== null) recordSource(store, deployment, source);
  transition(store, deployment, "skipped", { skipReason: reason });
  return true;
}
