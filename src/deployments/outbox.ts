import type { Store } from "#platform/sqlite";
import type { Deployment } from "./deployment.ts";

/** What happened to a deployment, as it was recorded then. */
export interface EventReport {
  /** `test`: nothing happened, and `deployment` is made up. */
  readonly event: "started" | "ended" | "test";
  readonly deployment: Deployment;
  /** Whether the last one of the project that had succeeded or failed, had failed. */
  readonly isAfterFailure: boolean;
}

/** A subscriber of a project for whom reports wait. */
export interface Reader {
  readonly project: string;
  readonly subscriber: string;
}

/** A report that waits to be delivered to one subscriber. */
export interface WaitingReport extends Reader {
  readonly id: number;
  readonly report: EventReport;
}

/**
 * Makes those with these names, which show nothing secret, the subscribers of the project. Reports that wait for others stay,
 * because they may be named again. Call it in a transaction.
 *
 * @param store the project's view
 */
export function setSubscribers(store: Store, names: readonly string[]): void {
  const others = "project = $project AND name NOT IN (SELECT value FROM json_each(?))";
  store.run(`DELETE FROM subscribers WHERE ${others}`, JSON.stringify(names));
  // One that is named after a failure is to be told of the success that ends it.
  const sql = `INSERT INTO subscribers (project, name, saw_failure) VALUES ($project, ?, coalesce((
      SELECT state <> 'succeeded' FROM deployments WHERE project = $project
        AND state IN ('succeeded', 'failed', 'timed_out') ORDER BY finished_at_ms DESC LIMIT 1), 0))
    ON CONFLICT DO NOTHING`;
  for (const name of names) store.run(sql, name);
}

/**
 * Puts into the outbox how a deployment ended, in the transaction that records it. One that was never started is not
 * reported: nobody was sent that it began.
 */
export function reportEnding(store: Store, deployment: Deployment): void {
  const { state, project, startedAtMs } = deployment;
  if (startedAtMs === null) return;
  putReport(store, "ended", deployment);
  if (!["succeeded", "failed", "timed_out"].includes(state)) return;
  const sql = "UPDATE subscribers SET saw_failure = ? WHERE project = ?";
  store.run(sql, Number(state !== "succeeded"), project);
}

/** Puts what happened to a deployment into the outbox, for each subscriber. Call it in a transaction. */
export function putReport(store: Store, event: "started" | "ended", deployment: Deployment): void {
  const { id, project } = deployment;
  const sql = `INSERT INTO outbox (project, subscriber, is_after_failure, event, deployment_id, deployment)
    SELECT project, name, saw_failure, ?, ?, ? FROM subscribers WHERE project = ?`;
  store.run(sql, event, id, JSON.stringify(deployment), project);
}

/** Those for whom reports wait. */
export function listReaders(store: Store): readonly Reader[] {
  return store.all("SELECT DISTINCT project, subscriber FROM outbox") as unknown as readonly Reader[];
}

/** The oldest report that waits for a subscriber, or null. */
export function nextReport(store: Store, { project, subscriber }: Reader): WaitingReport | null {
  const sql = `SELECT id, event, deployment, is_after_failure FROM outbox
    WHERE project = ? AND subscriber = ? ORDER BY id LIMIT 1`;
  const row = store.get(sql, project, subscriber);
  if (row === undefined) return null;
  const report = {
    event: row.event as EventReport["event"],
    deployment: JSON.parse(String(row.deployment)) as Deployment,
    isAfterFailure: row.is_after_failure === 1,
  };
  return { id: Number(row.id), project, subscriber, report };
}

/** Takes a report out of the outbox. */
export function removeReport(store: Store, id: number): void {
  store.transaction(() => store.run("DELETE FROM outbox WHERE id = ?", id));
}

/** Takes the reports on what happened before a time out of the outbox. @returns the subscriber of each */
export function removeReportsBefore(store: Store, ms: number): readonly string[] {
  const sql = `DELETE FROM outbox WHERE coalesce(deployment ->> 'finishedAtMs', deployment ->> 'startedAtMs') < ?
    RETURNING subscriber`;
  return store.transaction(() => store.all(sql, ms)).map(({ subscriber }) => String(subscriber));
}
