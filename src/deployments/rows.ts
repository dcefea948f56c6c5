import { type ProblemCode, problems } from "../problems.ts";
import type { Deployment, DeploymentState, Trigger } from "./deployment.ts";
import { lastInQueue } from "./states.ts";
import type { Row, SqlValue, Store } from "./store.ts";

/** The columns of a deployment. `toDeployment` reads a row of them. */
export const columns = `id, trigger, ref, before_commit, commit_id, repository, host, delivery_id, state, attempts,
  checked_out_commit, subject, author, pusher, requested_by, cancelled_by, superseded_by, exit_code, problem_code, problem_detail, created_at_ms, started_at_ms, finished_at_ms`;

/** Reads a deployment from a row. The schema's own checks vouch for the types. */
export function toDeployment(row: Row): Deployment {
  const code = row.problem_code as string | null;
  return {
    id: row.id as number,
    trigger: row.trigger as Trigger,
    ref: row.ref as string,
    before: row.before_commit as string | null,
    commit: row.commit_id as string,
    checkedOutCommit: row.checked_out_commit as string | null,
    subject: row.subject as string | null,
    author: row.author as string | null,
    pusher: row.pusher as string | null,
    requestedBy: row.requested_by as string | null,
    cancelledBy: row.cancelled_by as string | null,
    repository: row.repository as string | null,
    host: row.host as string | null,
    deliveryId: row.delivery_id as string | null,
    state: row.state as DeploymentState,
    attempts: row.attempts as number,
    supersededBy: row.superseded_by as number | null,
    exitCode: row.exit_code as number | null,
    problem: isProblemCode(code) ? { code, detail: row.problem_detail as string } : null,
    createdAtMs: row.created_at_ms as number,
    startedAtMs: row.started_at_ms as number | null,
    finishedAtMs: row.finished_at_ms as number | null,
  };
}

function isProblemCode(code: string | null): code is ProblemCode {
  return code !== null && Object.hasOwn(problems, code);
}

/** The deployments that `clauses` select. They follow `SELECT … FROM deployments`. */
export function selectDeployments(
  store: Store,
  clauses: string,
  ...values: readonly SqlValue[]
): readonly Deployment[] {
  return store.all(`SELECT ${columns} FROM deployments ${clauses}`, ...values).map(toDeployment);
}

/** The first deployment that `clauses` select, or null. */
export function selectDeployment(
  store: Store,
  clauses: string,
  ...values: readonly SqlValue[]
): Deployment | null {
  const row = store.get(`SELECT ${columns} FROM deployments ${clauses}`, ...values);
  return row ? toDeployment(row) : null;
}

/** @returns the deployment with `id`, or null if there never was one or it is pruned */
export function findDeployment(store: Store, id: number): Deployment | null {
  return selectDeployment(store, "WHERE id = ?", id);
}

export type NewDeployment = Pick<
  Deployment,
  "trigger" | "ref" | "before" | "commit" | "repository" | "host" | "deliveryId" | "pusher" | "requestedBy"
>;

/** Adds a deployment at the end of the queue. Call it in a transaction. */
export function insertDeployment(store: Store, deployment: NewDeployment): Deployment {
  const { trigger, ref, before, commit, repository, host, deliveryId, pusher, requestedBy } = deployment;
  const row = store.get(
    `INSERT INTO deployments (trigger, ref, before_commit, commit_id, repository, host, delivery_id, pusher,
       requested_by, state, queue_order, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ${lastInQueue}, ?) RETURNING ${columns}`,
    ...[trigger, ref, before, commit, repository, host, deliveryId, pusher, requestedBy, Date.now()],
  );
  if (!row) throw new Error("the new deployment was not inserted");
  return toDeployment(row);
}

/**
 * Makes the number of the next deployment higher than `last`. A database that was moved aside leaves logs and runs
 * behind, whose numbers no new deployment may have.
 */
export function numberAfter(store: Store, last: number): void {
  const sql = "SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'deployments'";
  if (Number(store.get(sql)?.last) >= last) return;
  store.transaction(() => {
    store.run("DELETE FROM sqlite_sequence WHERE name = 'deployments'");
    store.run("INSERT INTO sqlite_sequence (name, seq) VALUES ('deployments', ?)", last);
  });
}
