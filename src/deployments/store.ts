import { accessTables } from "#access/visitors";
import type { Log } from "#log";
import {
  type OpenStore,
  openStore,
  type Row,
  type Schema,
  type SqlValue,
  type Store,
} from "#platform/sqlite";
import { type ProblemCode, problems } from "#problems";
import { readSiteRequests } from "#site-requests";
import { type Deployment, type DeploymentState, isFinished, transitions } from "./deployment.ts";
import { reportEnding } from "./outbox.ts";

/** The record of deployments. */
const deploymentsSchema: Schema = {
  file: "hotpush.db",
  migrations: [],
  tables: `CREATE TABLE deployments (
      id             INTEGER PRIMARY KEY AUTOINCREMENT,
      project        TEXT NOT NULL,
      trigger        TEXT NOT NULL CHECK (trigger IN ('push', 'catch-up', 'image', 'manual', 'rollback')),
      ref            TEXT NOT NULL,
      before_commit  TEXT,                -- null: the branch was new, or nobody said
      commit_id      TEXT NOT NULL,
      repository     TEXT,
      host           TEXT,
      delivery_id    TEXT,                -- the host's own, unsigned
      state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'timed_out',
                                                    'cancelled', 'superseded', 'interrupted', 'skipped')),
      queue_order    INTEGER NOT NULL,    -- the lowest queued one of a project is next; of others, the order in which they started or left it
      attempts       INTEGER NOT NULL DEFAULT 0,
      superseded_by  INTEGER,
      exit_code      INTEGER,
      problem_code   TEXT,
      problem_detail TEXT,
      run_order      INTEGER,             -- the place at which its script was last started; null: it never was
      asked_after    INTEGER,             -- it failed, and its delivery was sent again: the place of the run that failed
      asked_attempts INTEGER NOT NULL DEFAULT 0, -- and the attempts until then
      is_taken_back  INTEGER NOT NULL DEFAULT 0, -- its version was live, and a person or the guard took it back
      skip_reason    TEXT,
      wait_reason    TEXT,
      created_at_ms  INTEGER NOT NULL,
      started_at_ms  INTEGER,
      finished_at_ms INTEGER,
      cancel_asked_at_ms INTEGER,
      checked_out_commit TEXT,            -- the head that it deploys; null: not known
      subject        TEXT,                -- of that commit; if it is not known, of commit_id
      author         TEXT,
      pusher         TEXT,                -- signed by the git host
      requested_by   TEXT,                -- as a command reported it: no proof of anything
      cancelled_by   TEXT,                -- likewise
      live_at_ms     INTEGER,             -- when users got the new version; null: not known
      requests       TEXT,                -- at the proxy during its roll-out: JSON, an object for each host
      signer         TEXT,                -- whose signature of its commit ALLOWED_SIGNERS has accepted
      images         TEXT                 -- those that a registry had, as name@digest: JSON; null: none was asked
    ) STRICT;
    -- single flight: the database itself refuses a second running deployment of a project
    CREATE UNIQUE INDEX one_running ON deployments (project) WHERE state = 'running';
    CREATE INDEX states ON deployments (project, state, ref);
    CREATE INDEX newest ON deployments (project, id);
    CREATE INDEX places ON deployments (queue_order);
    CREATE INDEX arrivals ON deployments (project, ref, commit_id);
    CREATE TABLE deliveries (
      project        TEXT NOT NULL,
      digest         TEXT NOT NULL,       -- of the signed bytes
      deployment_id  INTEGER NOT NULL,
      ref            TEXT NOT NULL,
      commit_id      TEXT NOT NULL,
      last_state     TEXT,                -- set when the deployment itself is pruned
      received_at_ms INTEGER NOT NULL,
      PRIMARY KEY (project, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deliveries_of ON deliveries (deployment_id);
    CREATE INDEX deliveries_by_age ON deliveries (project, received_at_ms);
    CREATE TABLE steps (
      deployment_id  INTEGER NOT NULL,
      attempt        INTEGER NOT NULL,
      position       INTEGER NOT NULL,
      name           TEXT NOT NULL,
      started_at_ms  INTEGER NOT NULL,
      PRIMARY KEY (deployment_id, attempt, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE receipts (
      deployment_id  INTEGER PRIMARY KEY,
      statement      TEXT NOT NULL,       -- as it was when the deployment succeeded: in-toto's, JSON
      receipt        TEXT                 -- with the server's signature: JSON; null: nobody has asked for it yet
    ) STRICT;
    CREATE TABLE secret_uses (
      project         TEXT NOT NULL,
      fingerprint     TEXT NOT NULL,      -- two bytes of a hash: enough to distinguish secrets, and nothing of one
      known_since_ms  INTEGER NOT NULL,
      last_used_at_ms INTEGER,
      host            TEXT,
      delivery_id     TEXT,               -- of the last delivery it signed; the host's own, unsigned
      PRIMARY KEY (project, fingerprint)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pauses (
      project        TEXT PRIMARY KEY,
      paused_at_ms   INTEGER NOT NULL,
      reason         TEXT,
      paused_by      TEXT                 -- as a command reported it
    ) STRICT, WITHOUT ROWID;
    -- which pushes of the spool are recorded
    CREATE TABLE spooled (
      seq            INTEGER PRIMARY KEY AUTOINCREMENT,
      id             TEXT NOT NULL UNIQUE,
      record         TEXT NOT NULL        -- the answer to its sender: JSON; null: it was refused
    ) STRICT;
    CREATE TABLE subscribers (
      project      TEXT NOT NULL,
      name         TEXT NOT NULL,         -- shows nothing secret
      saw_failure  INTEGER NOT NULL DEFAULT 0, -- whether the last success or failure of the project was a failure
      PRIMARY KEY (project, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE outbox (
      id               INTEGER PRIMARY KEY AUTOINCREMENT,
      project          TEXT NOT NULL,
      subscriber       TEXT NOT NULL,
      event            TEXT NOT NULL CHECK (event IN ('started', 'ended')),
      deployment_id    INTEGER NOT NULL,
      deployment       TEXT NOT NULL,     -- as it was then: JSON
      is_after_failure INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX letters ON outbox (project, subscriber, id);
    -- what only grows, and stays when deployments are pruned
    CREATE TABLE totals (
      project        TEXT NOT NULL,
      name           TEXT NOT NULL,       -- of a sample of a metric
      labels         TEXT NOT NULL,       -- as Prometheus writes them, without the project
      value          REAL NOT NULL,
      PRIMARY KEY (project, name, labels)
    ) STRICT;
    CREATE TABLE probes (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;${accessTables}`,
};

/**
 * Opens the record of deployments in `directory`.
 *
 * @throws as `openStore`
 */
export function openDeployments(directory: string): OpenStore {
  return openStore(directory, deploymentsSchema);
}

/** The columns of a deployment, by the names of its properties. `toDeployment` reads a row of them. */
export const columns = `id, project, trigger, ref, before_commit AS "before", commit_id AS "commit", repository, host, delivery_id AS deliveryId,
  state, attempts, checked_out_commit AS checkedOutCommit, subject, author, pusher, requested_by AS requestedBy,
  cancelled_by AS cancelledBy, superseded_by AS supersededBy, exit_code AS exitCode, problem_code AS problemCode,
  problem_detail AS problemDetail, skip_reason AS skipReason, wait_reason AS waitReason, created_at_ms AS createdAtMs, started_at_ms AS startedAtMs,
  live_at_ms AS liveAtMs, requests, finished_at_ms AS finishedAtMs`;

/** Reads a deployment from a row. The schema's own checks vouch for the types. */
export function toDeployment({ problemCode, problemDetail, requests: text, ...row }: Row): Deployment {
  const isKnown = typeof problemCode === "string" && Object.hasOwn(problems, problemCode);
  const problem = isKnown ? { code: problemCode as ProblemCode, detail: String(problemDetail) } : null;
  const requests = typeof text === "string" ? readSiteRequests(JSON.parse(text)) : null;
  return { ...row, problem, requests } as Deployment;
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
  return selectDeployments(store, clauses, ...values)[0] ?? null;
}

/** Whether there is a deployment that fulfils the SQL condition. */
export function hasDeployment(store: Store, condition: string, ...values: readonly SqlValue[]): boolean {
  return store.get(`SELECT 1 FROM deployments WHERE ${condition} LIMIT 1`, ...values) !== undefined;
}

/** @returns the deployment with `id`, or null if there never was one or it is pruned */
export function findDeployment(store: Store, id: number): Deployment | null {
  return selectDeployment(store, "WHERE id = ?", id);
}

/** SQL: no person has asked for the deployment. */
export const isUnasked = "trigger IN ('push', 'catch-up', 'image') AND asked_after IS NULL";

/** SQL: the place in a column comes after that of the deployment with this id, in the order of their starts. */
export function isAfter(column: "queue_order" | "run_order" | "asked_after"): string {
  return `${column} > coalesce((SELECT queue_order FROM deployments WHERE id = ?), -9e18)`;
}

/** SQL: the deployment waits for its turn, and is not among these ids: a JSON array. */
export const isReady =
  "project = $project AND state = 'queued' AND id NOT IN (SELECT value FROM json_each(?))";

/** SQL for the last place in the queue. */
const lastInQueue = "(SELECT coalesce(max(queue_order), 0) + 1 FROM deployments)";

type NewDeployment = Pick<Deployment, "trigger" | "ref" | "commit"> &
  Partial<Pick<Deployment, "before" | "repository" | "host" | "deliveryId" | "pusher" | "requestedBy">> & {
    /** Those that it was requested for, as name@digest. */
    readonly images?: readonly string[];
  };

/** Adds a deployment at the end of the queue. Call it in a transaction. */
export function insertDeployment(store: Store, deployment: NewDeployment): Deployment {
  // A member that is not there is NULL.
  const sql = `INSERT INTO deployments (project, state, queue_order, created_at_ms, trigger, ref, before_commit, commit_id,
      repository, host, delivery_id, pusher, requested_by, images)
    SELECT $project, 'queued', ${lastInQueue}, ?, given ->> 'trigger', given ->> 'ref', given ->> 'before', given ->> 'commit',
      given ->> 'repository', given ->> 'host', given ->> 'deliveryId', given ->> 'pusher', given ->> 'requestedBy',
      given -> 'images' FROM (SELECT ? AS given) RETURNING ${columns}`;
  return toDeployment(store.get(sql, Date.now(), JSON.stringify(deployment)) as Row);
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

type TransitionDetails = Partial<Pick<Deployment, "supersededBy" | "exitCode" | "problem" | "skipReason">>;

/** The table has no such transition, or the deployment is in another state by now. */
export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
}

/**
 * Changes the state of a deployment. Call it in a transaction. Every change of state goes through here, except the
 * claim and its return to the queue, below.
 *
 * @throws IllegalTransition if the table has no such transition, or the deployment is in another state by now
 */
export function transition(
  store: Store,
  { id, state: from }: Pick<Deployment, "id" | "state">,
  to: DeploymentState,
  details: TransitionDetails = {},
): void {
  if (!transitions[from].includes(to)) {
    throw new IllegalTransition(`deployment ${id} cannot go from ${from} to ${to}`);
  }
  const sql = `UPDATE deployments SET state = ?, finished_at_ms = ?, wait_reason = NULL, superseded_by = given ->> 'supersededBy',
      exit_code = given ->> 'exitCode', problem_code = given ->> '$.problem.code', problem_detail = given ->> '$.problem.detail',
      skip_reason = given ->> 'skipReason' FROM (SELECT ? AS given) WHERE id = ? AND state = ?`;
  const finishedAtMs = isFinished(to) ? Date.now() : null;
  const { changes } = store.run(sql, to, finishedAtMs, JSON.stringify(details), id, from);
  if (changes !== 1) throw new IllegalTransition(`deployment ${id} is not ${from} any more`);
  // Also what ends in the queue: one that was put back stood before the last success, and counted as older than that.
  if (to === "queued" || from === "queued")
    store.run(`UPDATE deployments SET queue_order = ${lastInQueue} WHERE id = ?`, id);
  const ended = isFinished(to) ? findDeployment(store, id) : null;
  if (ended === null) return;
  reportEnding(store, ended);
  addToTotals(store, ended);
}

export function findRunning(store: Store): Deployment | null {
  return selectDeployment(store, "WHERE project = $project AND state = 'running'");
}

/**
 * Claims the next deployment in the queue of a project, if there is one, none is running and it is not paused. Call it in
 * a transaction. The attempt is counted here, before anything can go wrong with it.
 *
 * @param resting deployments that wait for something else than their turn
 */
export function claimNext(store: Store, resting: readonly number[] = []): Deployment | null {
  const row = store.get(
    `UPDATE deployments SET state = 'running', attempts = attempts + 1, started_at_ms = ?, finished_at_ms = NULL,
       cancel_asked_at_ms = NULL, cancelled_by = NULL, checked_out_commit = NULL, subject = NULL, author = NULL,
       live_at_ms = NULL, requests = NULL, signer = NULL, wait_reason = NULL, queue_order = ${lastInQueue}
     WHERE id = (SELECT id FROM deployments WHERE ${isReady} ORDER BY queue_order LIMIT 1)
       AND NOT EXISTS (SELECT 1 FROM deployments WHERE project = $project AND state = 'running')
       AND NOT EXISTS (SELECT 1 FROM pauses WHERE project = $project)
     RETURNING ${columns}`,
    Date.now(),
    JSON.stringify(resting),
  );
  return row ? toDeployment(row) : null;
}

/**
 * Puts a claimed deployment back at the front of the queue. It could not be started, which does not count as an attempt.
 *
 * @param waitReason why it waits, for a person; null if that is not its own fault
 */
export function putBack(store: Store, { id }: Deployment, waitReason: string | null = null): void {
  store.run(
    `UPDATE deployments SET state = 'queued', attempts = attempts - 1, wait_reason = ?,
       started_at_ms = iif(attempts - 1 > asked_attempts, started_at_ms, NULL),
       queue_order = (SELECT min(queue_order) FROM deployments) - 1 WHERE id = ? AND state = 'running'`,
    waitReason,
    id,
  );
}

/** A sample of a metric that only grows. Its name and labels are Prometheus's, without the project. */
export interface Total {
  readonly project: string;
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/** The upper ends of the histograms' buckets. */
const bucketSeconds = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, Number.POSITIVE_INFINITY];

/**
 * How a deployment ended, in the words of OpenTelemetry's conventions for CI/CD (`cicd.pipeline.result`).
 * https://opentelemetry.io/docs/specs/semconv/cicd/cicd-metrics/
 */
const results: Partial<Record<DeploymentState, string>> = {
  succeeded: "success",
  failed: "failure",
  timed_out: "timeout",
  cancelled: "cancellation",
  superseded: "cancellation",
  skipped: "skip",
};

/** Adds a deployment that has ended to the totals, which stay when it is pruned. One that was never started counts nowhere. */
function addToTotals(store: Store, deployment: Deployment): void {
  const { project, state, trigger, problem, requests, createdAtMs, startedAtMs, finishedAtMs } = deployment;
  const result = results[state];
  if (result === undefined || startedAtMs === null || finishedAtMs === null) return;
  const add = (name: string, labels: string, value: number) => {
    const sql = `INSERT INTO totals (project, name, labels, value) VALUES (?, ?, ?, ?)
      ON CONFLICT DO UPDATE SET value = value + excluded.value`;
    store.run(sql, project, name, labels, value);
  };
  const addToHistogram = (name: string, label: string, durationMs: number) => {
    const seconds = Math.max(0, durationMs) / 1_000;
    for (const end of bucketSeconds) {
      const le = `le="${end === Number.POSITIVE_INFINITY ? "+Inf" : end}"`;
      add(`${name}_bucket`, label ? `${label},${le}` : le, Number(seconds <= end));
    }
    add(`${name}_sum`, label, seconds);
    add(`${name}_count`, label, 1);
  };
  const durationMs = finishedAtMs - startedAtMs;
  addToHistogram("cicd_pipeline_run_duration_seconds", `cicd_pipeline_result="${result}"`, durationMs);
  if (problem !== null) add("cicd_pipeline_run_errors_total", `error_type="${problem.code}"`, 1);
  const toLiveMs = (deployment.liveAtMs ?? finishedAtMs) - createdAtMs;
  if (state === "succeeded" && trigger === "push")
    addToHistogram("hotpush_push_to_live_seconds", "", toLiveMs);
  for (const { requests: counted, failed } of requests ?? []) {
    add("hotpush_rollout_requests_total", "", counted);
    add("hotpush_rollout_failed_requests_total", "", failed);
  }
}

/** All totals, by project. */
export function listTotals(store: Store): readonly Total[] {
  const sql = "SELECT project, name, labels, value FROM totals ORDER BY project, rowid";
  return store.all(sql) as unknown as readonly Total[];
}

/** A queue that is held: pushes are recorded, and wait. */
export interface Pause {
  readonly pausedAtMs: number;
  readonly reason: string | null;
  /** Who requested it, as the command reported, without proof. */
  readonly pausedBy: string | null;
}

/** Holds the queue of a project. A running deployment goes on. Call it in a transaction. */
export function pauseQueue(store: Store, { reason, pausedBy }: Omit<Pause, "pausedAtMs">): void {
  const sql = "INSERT OR REPLACE INTO pauses VALUES ($project, ?, ?, ?)";
  store.run(sql, Date.now(), reason, pausedBy);
}

/** Lets the queue of a project go on. Call it in a transaction. @returns false if it was not paused */
export function resumeQueue(store: Store): boolean {
  return store.run("DELETE FROM pauses WHERE project = $project").changes === 1;
}

/** @returns null if the queue is not paused */
export function findPause(store: Store): Pause | null {
  const sql =
    "SELECT paused_at_ms AS pausedAtMs, reason, paused_by AS pausedBy FROM pauses WHERE project = $project";
  return (store.get(sql) as Pause | undefined) ?? null;
}

/** A step of one attempt. `endedAtMs` is null while it goes on, and if nobody saw its end. */
export interface DeploymentStep {
  readonly attempt: number;
  readonly name: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

/** Logs and records that a deployment has begun a step. If the disk fails, the step is only logged: the run goes on. */
export function noteStep(store: Store, { id, attempts }: Deployment, name: string, log: Log): void {
  log.info({ event: "deployment.step", deployment: id, step: name }, `Deployment ${id}: ${name}`);
  const sql = `INSERT INTO steps (deployment_id, attempt, position, name, started_at_ms)
    VALUES (?, ?, (SELECT count(*) + 1 FROM steps WHERE deployment_id = ? AND attempt = ?), ?, ?)`;
  try {
    store.transaction(() => store.run(sql, id, attempts, id, attempts, name, Date.now()));
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "A step could not be written to disk");
  }
}

/** The steps of all attempts, in the order in which they began. */
export function listSteps(store: Store, deployment: Deployment): readonly DeploymentStep[] {
  const { id, attempts, finishedAtMs } = deployment;
  const sql = `SELECT attempt, name, started_at_ms AS startedAtMs,
      coalesce(lead(started_at_ms) OVER (PARTITION BY attempt ORDER BY position), iif(attempt = ?, ?, NULL)) AS endedAtMs
    FROM steps WHERE deployment_id = ? ORDER BY attempt, position`;
  return store.all(sql, attempts, finishedAtMs, id) as unknown as readonly DeploymentStep[];
}

/** When a secret last signed a delivery, and which one. */
export interface SecretUse {
  /** When a service first ran with it. */
  readonly knownSinceMs: number;
  readonly lastUsedAtMs: number | null;
  readonly host: string | null;
  /** The host's own id, unsigned. */
  readonly deliveryId: string | null;
}

/** Records since when a secret is known, if that is not on disk yet. Call it in a transaction. */
export function knowSecret(store: Store, fingerprint: string): void {
  const sql =
    "INSERT INTO secret_uses (project, fingerprint, known_since_ms) VALUES ($project, ?, ?) ON CONFLICT DO NOTHING";
  store.run(sql, fingerprint, Date.now());
}

/** Records that a secret has signed a delivery now. Call it in a transaction. */
export function noteSecretUse(
  store: Store,
  fingerprint: string,
  { host, deliveryId }: Pick<SecretUse, "host" | "deliveryId">,
): void {
  knowSecret(store, fingerprint);
  const sql =
    "UPDATE secret_uses SET last_used_at_ms = ?, host = ?, delivery_id = ? WHERE project = $project AND fingerprint = ?";
  store.run(sql, Date.now(), host, deliveryId, fingerprint);
}

/** What is known of a secret. One that nothing is known of is known since now. */
export function readSecretUse(store: Store, fingerprint: string): SecretUse {
  const sql = `SELECT known_since_ms AS knownSinceMs, last_used_at_ms AS lastUsedAtMs, host, delivery_id AS deliveryId
    FROM secret_uses WHERE project = $project AND fingerprint = ?`;
  const nothing = { knownSinceMs: Date.now(), lastUsedAtMs: null, host: null, deliveryId: null };
  return (store.get(sql, fingerprint) as SecretUse | undefined) ?? nothing;
}
