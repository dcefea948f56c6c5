import type { Deployment } from "./deployment.ts";
import { columns, toDeployment } from "./row.ts";
import type { Store } from "./store.ts";

/** A step of one attempt; `endedAtMs` is null while it goes on, and where nobody saw its end. */
export interface Step {
  readonly attempt: number;
  readonly name: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

/** The newest deployments, newest first. */
export function listDeployments(store: Store, limit: number): readonly Deployment[] {
  return store.all(`SELECT ${columns} FROM deployments ORDER BY id DESC LIMIT ?`, limit).map(toDeployment);
}

/** What waits, in the order in which it will run. */
export function listWaiting(store: Store): readonly Deployment[] {
  return store
    .all(`SELECT ${columns} FROM deployments WHERE state IN ('queued', 'interrupted') ORDER BY queue_order`)
    .map(toDeployment);
}

export function findRunning(store: Store): Deployment | null {
  const row = store.get(`SELECT ${columns} FROM deployments WHERE state = 'running'`);
  return row ? toDeployment(row) : null;
}

/** The deployment that has output to show: the one that runs, else the newest that ever started. */
export function findLatest(store: Store): Deployment | null {
  const row = store.get(
    `SELECT ${columns} FROM deployments WHERE attempts > 0 ORDER BY state = 'running' DESC, id DESC LIMIT 1`,
  );
  return row ? toDeployment(row) : null;
}

/** The last deployment of each branch that ended and was not superseded. */
export function listLastOfBranches(store: Store): readonly Deployment[] {
  return store
    .all(
      `SELECT ${columns} FROM deployments WHERE id IN
         (SELECT max(id) FROM deployments
          WHERE state IN ('succeeded', 'failed', 'timed_out', 'cancelled') GROUP BY ref) ORDER BY ref`,
    )
    .map(toDeployment);
}

/** The one of `refs` that was deployed last, or null if none was. */
export function findLastRef(store: Store, refs: readonly string[]): string | null {
  const sql = `SELECT ref FROM deployments WHERE ref IN (${placesFor(refs)}) ORDER BY state = 'succeeded' DESC, id DESC LIMIT 1`;
  return (store.get(sql, ...refs)?.ref as string | undefined) ?? null;
}

/** The one of `refs` that the last successful deployment of them deployed, or null if none succeeded. */
export function findLastDeployedRef(store: Store, refs: readonly string[]): string | null {
  const sql = `SELECT ref FROM deployments WHERE state = 'succeeded' AND ref IN (${placesFor(refs)}) ORDER BY id DESC LIMIT 1`;
  return (store.get(sql, ...refs)?.ref as string | undefined) ?? null;
}

/**
 * The last deployment that was asked for the commit with these first digits, and succeeded with another one checked out;
 * null if there is none.
 */
export function findPassedBy(store: Store, commit: string): Deployment | null {
  const row = store.get(
    `SELECT ${columns} FROM deployments WHERE state = 'succeeded' AND checked_out_commit <> commit_id
       AND substr(commit_id, 1, ?) = ? ORDER BY id DESC LIMIT 1`,
    commit.length,
    commit,
  );
  return row ? toDeployment(row) : null;
}

/** The commit that the last successful deployment brought, of any branch; what a roll back brought back does not count. */
export function findLastDeployedCommit(store: Store): string | null {
  const row = store.get(
    `SELECT coalesce(checked_out_commit, commit_id) AS id FROM deployments
     WHERE state = 'succeeded' AND trigger <> 'rollback' ORDER BY id DESC LIMIT 1`,
  );
  return (row?.id as string | undefined) ?? null;
}

/** The steps of all attempts, in the order in which they began. */
export function listSteps(store: Store, deployment: Deployment): readonly Step[] {
  const rows = store.all(
    "SELECT attempt, name, started_at_ms FROM steps WHERE deployment_id = ? ORDER BY attempt, position",
    deployment.id,
  );
  return rows.map((row, index) => {
    const next = rows[index + 1];
    const isLastOfAll = next === undefined && row.attempt === deployment.attempts;
    const endedAtMs =
      next?.attempt === row.attempt ? next?.started_at_ms : isLastOfAll ? deployment.finishedAtMs : null;
    return {
      attempt: Number(row.attempt),
      name: String(row.name),
      startedAtMs: Number(row.started_at_ms),
      endedAtMs: (endedAtMs as number | null | undefined) ?? null,
    };
  });
}

function placesFor(values: readonly unknown[]): string {
  return values.map(() => "?").join(", ");
}
