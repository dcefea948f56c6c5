import type { Store } from "./store.ts";

/** What the head of a branch at the remote means for the branch: whether it is deployed, is missing, or may be stale. */
export type Verdict = "in place" | "doubtful" | "missing";

export type JudgeHead = (ref: string, head: string, isVouchedFor?: boolean) => Verdict;

/**
 * Makes the function that judges the head that the remote reports of a branch. A head that was never seen is missing. An
 * older one may be what a mirror that lags still says: it is missing if the remote says it twice in a row, at least
 * `confirmMs` apart, or if a push of this very commit vouches for it. After a roll back an older head changes nothing.
 */
export function createJudgeHead(store: Store, confirmMs: number): JudgeHead {
  let doubted: { readonly ref: string; readonly head: string; readonly sinceMs: number } | null = null;
  return (ref, head, isVouchedFor = false) => {
    const newest = findNewest(store, ref);
    const wasSeen = wasSeenBefore(store, ref, head);
    const before = doubted;
    doubted = null;
    // Who rolled back wants to stay there until the next push, and what was never seen is one.
    if (newest?.commits.includes(head) || (newest?.trigger === "rollback" && wasSeen)) return "in place";
    if (!wasSeen || isVouchedFor) return "missing";
    const isRepeated = before?.ref === ref && before.head === head;
    if (isRepeated && performance.now() - before.sinceMs >= confirmMs) return "missing";
    doubted = isRepeated ? before : { ref, head, sinceMs: performance.now() };
    return "doubtful";
  };
}

export interface Newest {
  readonly trigger: string;
  /** What was asked for, and what its script had checked out in the end. */
  readonly commits: readonly unknown[];
}

/** The newest deployment that counts; a failed or cancelled one does: it is not for us to try it again. */
export function findNewest(store: Store, ref: string): Newest | null {
  const row = store.get(
    `SELECT commit_id, checked_out_commit, trigger FROM deployments WHERE ref = ? AND state <> 'superseded'
     ORDER BY id DESC LIMIT 1`,
    ref,
  );
  return row ? { trigger: String(row.trigger), commits: [row.commit_id, row.checked_out_commit] } : null;
}

/** Deliveries are remembered longer than deployments. */
function wasSeenBefore(store: Store, ref: string, commit: string): boolean {
  const seenIn = (table: "deployments" | "deliveries", column: "commit_id" | "checked_out_commit") =>
    store.get(`SELECT 1 FROM ${table} WHERE ref = ? AND ${column} = ? LIMIT 1`, ref, commit) !== undefined;
  return (
    seenIn("deployments", "commit_id") ||
    seenIn("deployments", "checked_out_commit") ||
    seenIn("deliveries", "commit_id")
  );
}
