import type { Store } from "#platform/sqlite";
import type { SiteRequests } from "#site-requests";
import { type Deployment, type DeploymentState, liveCommit } from "./deployment.ts";
import { selectDeployment, selectDeployments } from "./store.ts";

/** Which deployments to list. */
export interface Listed {
  readonly limit: number;
  /** Only those with a lower number. */
  readonly before?: number;
  readonly state?: DeploymentState;
}

/** The newest deployments, newest first. */
export function listDeployments(
  store: Store,
  { limit, before = Number.MAX_SAFE_INTEGER, state }: Listed,
): readonly Deployment[] {
  const clauses = `WHERE ${inScope(store)} AND id < ? AND state = coalesce(?, state) ORDER BY id DESC LIMIT ?`;
  return selectDeployments(store, clauses, before, state ?? null, limit);
}

/** What waits, in the order in which it will run. */
export function listWaiting(store: Store): readonly Deployment[] {
  return selectDeployments(
    store,
    `WHERE ${inScope(store)} AND state IN ('queued', 'interrupted') ORDER BY queue_order`,
  );
}

/** All that run: at most one of each project. */
export function listRunning(store: Store): readonly Deployment[] {
  return selectDeployments(store, `WHERE ${inScope(store)} AND state = 'running' ORDER BY started_at_ms`);
}

/** The deployment that has output to show: the one that runs, else the one that was started last, else one that waits. */
export function findLatest(store: Store): Deployment | null {
  return selectDeployment(
    store,
    `WHERE ${inScope(store)} AND (attempts > 0 OR state = 'queued') AND state <> 'skipped'
     ORDER BY state = 'running' DESC, attempts > 0 DESC, queue_order DESC LIMIT 1`,
  );
}

/** The last deployment of each branch whose script has ended, and what was skipped since. */
export function listLastOfBranches(store: Store): readonly Deployment[] {
  const last = (states: string) =>
    `SELECT id FROM (SELECT id, max(queue_order) FROM deployments WHERE ${inScope(store)} AND state IN (${states}) GROUP BY project, ref)`;
  const ended = "'succeeded', 'failed', 'timed_out', 'cancelled'";
  return selectDeployments(
    store,
    `WHERE id IN (${last(ended)} UNION ${last(`${ended}, 'skipped'`)}) ORDER BY project, ref, id`,
  );
}

/** The one of `refs` that was deployed last, or tried last if none was; null if none was tried. */
export function findLastRef(store: Store, refs: readonly string[]): string | null {
  const sql = `SELECT ref FROM deployments WHERE project = $project AND ref IN (SELECT value FROM json_each(?))
    ORDER BY state = 'succeeded' DESC, queue_order DESC LIMIT 1`;
  return (store.get(sql, JSON.stringify(refs))?.ref as string | undefined) ?? null;
}

/**
 * The last deployment that succeeded, roll backs included: what it has deployed is live. With `refs`, the last one that
 * changed the commit of these branches: another branch may be live since, or newer images of the same commit.
 */
export function findLastGood(store: Store, refs?: readonly string[]): Deployment | null {
  const ofRefs = refs ? "AND trigger <> 'image' AND ref IN (SELECT value FROM json_each(?))" : "";
  const clauses = `WHERE project = $project AND state = 'succeeded' ${ofRefs} ORDER BY queue_order DESC LIMIT 1`;
  return selectDeployment(store, clauses, ...(refs ? [JSON.stringify(refs)] : []));
}

/** The commit that the last successful deployment of any branch deployed. Roll backs do not count. */
export function findLastDeployedCommit(store: Store): string | null {
  const clauses =
    "WHERE project = $project AND state = 'succeeded' AND trigger <> 'rollback' ORDER BY queue_order DESC LIMIT 1";
  const last = selectDeployment(store, clauses);
  return last && liveCommit(last);
}

/**
 * When a delivery or a request first named a commit of a branch, in milliseconds since 1970; null: none did. A head that was found
 * otherwise doesn't count: its deployment may be older than the commit.
 */
export function findFirstSeenMs(store: Store, ref: string, commit: string): number | null {
  const sql = `SELECT min(ms) AS ms FROM (
    SELECT created_at_ms AS ms FROM deployments WHERE project = $project AND ref = ? AND commit_id = ?
    UNION ALL SELECT received_at_ms FROM deliveries WHERE project = $project AND ref = ? AND commit_id = ?)`;
  return (store.get(sql, ref, commit, ref, commit)?.ms as number | null | undefined) ?? null;
}

/** SQL that selects the project of a view, or all. */
function inScope({ project }: Store): string {
  return project === null ? "true" : "project = $project";
}

/** The requests that the roll-outs counted whose deployments have ended since a time, and those of them that failed. */
export function countRequests(store: Store, sinceMs: number): RequestCounts {
  const sumOf = (member: string) => `coalesce(sum(json_extract(site.value, '$.${member}')), 0) AS ${member}`;
  const sql = `SELECT ${sumOf("requests")}, ${sumOf("failed")} FROM deployments, json_each(deployments.requests) AS site
    WHERE project = $project AND finished_at_ms >= ?`;
  return store.get(sql, sinceMs) as unknown as RequestCounts;
}

export type RequestCounts = Pick<SiteRequests, "requests" | "failed">;

const deploymentsKept = 1_000;
/** A captured delivery stays known, and so harmless, for as long. */
const deliveriesKept = 50_000;

/** How much is deleted at once. After a flood of pushes, deleting everything would block the service for seconds. */
const prunedAtOnce = 500;

/**
 * Deletes the oldest part of a long history. Call it in a transaction. It keeps what has not finished; and the last success of
 * each kind, because a flood of pushes must not make anybody forget what is live, nor which commit was deployed last.
 */
export function pruneHistory(store: Store): void {
  const lastGood = `SELECT id FROM (SELECT id, max(queue_order) FROM deployments WHERE project = $project AND state = 'succeeded'
    GROUP BY ref, trigger)`;
  const oldestKept = `SELECT id FROM deployments WHERE project = $project ORDER BY id DESC LIMIT 1 OFFSET ${deploymentsKept - 1}`;
  const old = `SELECT id FROM deployments WHERE project = $project AND id < (${oldestKept}) AND id NOT IN (${lastGood})
    AND state NOT IN ('queued', 'running', 'interrupted') ORDER BY id LIMIT ${prunedAtOnce}`;
  store.run(
    `UPDATE deliveries SET last_state = (SELECT state FROM deployments WHERE id = deployment_id)
     WHERE deployment_id IN (${old})`,
  );
  store.run(`DELETE FROM receipts WHERE deployment_id IN (${old})`);
  store.run(`DELETE FROM steps WHERE deployment_id IN (${old})`);
  store.run(`DELETE FROM deployments WHERE id IN (${old})`);
  store.run(
    `DELETE FROM deliveries WHERE project = $project AND digest IN (SELECT digest FROM deliveries
       WHERE project = $project ORDER BY received_at_ms DESC LIMIT ${prunedAtOnce} OFFSET ${deliveriesKept})`,
  );
}
