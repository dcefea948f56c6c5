import type { Store } from "#platform/sqlite";
import { type Deployment, findDeployment } from "./deployment.ts";

/** Who is sent what happens to the deployments of a project, by a name that shows nothing secret. */
export interface Subscriber {
  readonly name: string;
  /** Whether it is also sent that a script was started. */
  readonly wantsStarts: boolean;
}

/** What happened to a deployment, as it was recorded then. */
export interface EventReport {
  /** `test`: nothing happened, and `deployment` is made up. */
  readonly event: "started" | "ended" | "test";
  readonly deployment: Deployment;
  /** Whether the last one of the project that had succeeded or failed, had failed. */
  readonly isAfterFailure: boolean;
}

/** A report that waits to be delivered to one subscriber. */
export interface WaitingReport {
  readonly id: number;
  readonly project: string;
  readonly subscriber: string;
  readonly deploymentId: number;
  readonly report: EventReport;
}

/**
 * Makes `subscribers` those of the project. Reports that wait for others stay, because they may be named again.
 *
 * @param store the project's view
 */
export function setSubscribers(store: Store, subscribers: readonly Subscriber[]): void {
  const known = store.all(
    "SELECT name, wants_starts FROM subscribers WHERE project = $project ORDER BY name",
  );
  const wanted = subscribers.toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const textOf = (name: unknown, wantsStarts: unknown) => `${Number(wantsStarts)} ${name}`;
  const isSame =
    known.map(({ name, wants_starts }) => textOf(name, wants_starts)).join("\n") ===
    wanted.map(({ name, wantsStarts }) => textOf(name, wantsStarts)).join("\n");
  if (isSame) return;
  store.transaction(() => {
    for (const { name } of known.filter((row) => !wanted.some((one) => one.name === row.name))) {
      store.run("DELETE FROM subscribers WHERE project = $project AND name = ?", String(name));
    }
    const sql = `INSERT INTO subscribers (project, name, wants_starts) VALUES ($project, ?, ?)
      ON CONFLICT DO UPDATE SET wants_starts = excluded.wants_starts`;
    for (const { name, wantsStarts } of wanted) store.run(sql, name, Number(wantsStarts));
  });
}

/**
 * Puts into the outbox that a script was started, unless that is over. Call it in a transaction.
 *
 * @returns whether anybody wants to be sent that
 */
export function reportStart(store: Store, { id, attempts }: Pick<Deployment, "id" | "attempts">): boolean {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "running" || deployment.attempts !== attempts) return false;
  return put(store, "started", deployment);
}

/**
 * Puts into the outbox how a deployment ended, in the transaction that records it. One that was never started is not
 * reported: nobody was sent that it began.
 */
export function reportEnding(store: Store, id: number): void {
  if (!hasSubscribers(store, id)) return;
  const deployment = findDeployment(store, id);
  if (deployment === null || deployment.attempts === 0) return;
  put(store, "ended", deployment);
  const { state, project } = deployment;
  if (!["succeeded", "failed", "timed_out"].includes(state)) return;
  const sql = "UPDATE subscribers SET saw_failure = ? WHERE project = ?";
  store.run(sql, Number(state !== "succeeded"), project);
}

function hasSubscribers(store: Store, id: number): boolean {
  const sql =
    "SELECT 1 FROM subscribers WHERE project = (SELECT project FROM deployments WHERE id = ?) LIMIT 1";
  return store.get(sql, id) !== undefined;
}

function put(store: Store, event: EventReport["event"], deployment: Deployment): boolean {
  const { changes } = store.run(
    `INSERT INTO outbox (project, subscriber, is_after_failure, event, deployment_id, deployment, created_at_ms)
     SELECT project, name, saw_failure, ?, ?, ?, ? FROM subscribers WHERE project = ? AND (? = 'ended' OR wants_starts)`,
    ...[event, deployment.id, JSON.stringify(deployment), Date.now(), deployment.project, event],
  );
  return changes > 0;
}

/** Whether any report waits to be delivered. */
export function hasReports(store: Store): boolean {
  return store.get("SELECT 1 FROM outbox LIMIT 1") !== undefined;
}

/** Those for whom reports wait. */
export function listReaders(store: Store): readonly Pick<WaitingReport, "project" | "subscriber">[] {
  const rows = store.all("SELECT DISTINCT project, subscriber FROM outbox");
  return rows.map(({ project, subscriber }) => ({
    project: String(project),
    subscriber: String(subscriber),
  }));
}

/** The oldest report that waits for a subscriber, or null. */
export function nextReport(
  store: Store,
  { project, subscriber }: Pick<WaitingReport, "project" | "subscriber">,
): WaitingReport | null {
  const sql = `SELECT id, event, deployment_id, deployment, is_after_failure FROM outbox
    WHERE project = ? AND subscriber = ? ORDER BY id LIMIT 1`;
  const row = store.get(sql, project, subscriber);
  if (row === undefined) return null;
  const report = {
    event: row.event as EventReport["event"],
    deployment: JSON.parse(String(row.deployment)) as Deployment,
    isAfterFailure: row.is_after_failure === 1,
  };
  return { id: Number(row.id), project, subscriber, deploymentId: Number(row.deployment_id), report };
}

/** Takes a report out of the outbox. */
export function removeReport(store: Store, id: number): void {
  store.transaction(() => store.run("DELETE FROM outbox WHERE id = ?", id));
}

/** Takes the reports that have waited since before `sinceMs` out of the outbox. @returns them */
export function removeOldReports(
  store: Store,
  sinceMs: number,
): readonly Pick<WaitingReport, "project" | "subscriber" | "deploymentId">[] {
  const old = store.all(
    "SELECT id, project, subscriber, deployment_id FROM outbox WHERE created_at_ms < ?",
    sinceMs,
  );
  if (old.length === 0) return [];
  store.transaction(() => {
    for (const { id } of old) store.run("DELETE FROM outbox WHERE id = ?", Number(id));
  });
  return old.map(({ project, subscriber, deployment_id }) => ({
    ...{ project: String(project), subscriber: String(subscriber), deploymentId: Number(deployment_id) },
  }));
}
