import type { Row, SqlValue, Store } from "#platform/sqlite";
import { type Problem, type ProblemCode, problems } from "#problems";
import { readSiteRequests, type SiteRequests } from "#site-requests";

export type Trigger = "push" | "catch-up" | "manual" | "rollback";

export type DeploymentState =
  | "queued"
  | "running"
  | "succeeded"
  | "failed"
  | "timed_out"
  | "cancelled"
  | "superseded"
  | "interrupted"
  | "skipped";

/** A deployment as it is recorded. Times are in milliseconds since 1970, for people: no decision depends on them. */
export interface Deployment {
  readonly id: number;
  readonly project: string;
  readonly trigger: Trigger;
  readonly ref: string;
  readonly before: string | null;
  /** The commit that was asked for. */
  readonly commit: string;
  /** The commit that it deploys: the head of its branch, which may be newer than `commit`; null while that is not known. */
  readonly checkedOutCommit: string | null;
  /** Subject and author of the commit that it deploys. Untrusted, bounded, printable. */
  readonly subject: string | null;
  readonly author: string | null;
  /** Who pushed, as the signed payload says. Untrusted, bounded, printable. */
  readonly pusher: string | null;
  /** Who requested it, as the command reported, without proof. Untrusted, bounded, printable. */
  readonly requestedBy: string | null;
  readonly cancelledBy: string | null;
  readonly repository: string | null;
  readonly host: string | null;
  readonly deliveryId: string | null;
  readonly state: DeploymentState;
  /** How often its script was started, counted before each start. */
  readonly attempts: number;
  readonly supersededBy: number | null;
  readonly exitCode: number | null;
  /** Why it ended as it did, for a person; null until it has ended, and if it succeeded. */
  readonly problem: Problem | null;
  /** Why its script was not run, if it ended as skipped. */
  readonly skipReason: string | null;
  /** Why it waits although nothing runs, for a person; null if it does not. */
  readonly waitReason: string | null;
  /** What its roll-out counted at the proxy; null if nothing was counted. Its deploy script may have written it. */
  readonly requests: readonly SiteRequests[] | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  /** When users got the new version, as its roll-out reports; null if that is not known. */
  readonly liveAtMs: number | null;
  readonly finishedAtMs: number | null;
}

/** What git reports about the commit that a deployment deploys. */
export type Source = Pick<Deployment, "checkedOutCommit" | "subject" | "author">;

/** What the roll-out of a deployment reports. */
export type RolloutReport = Pick<Deployment, "liveAtMs" | "requests">;

/** To end the guard with the verdict so far, or to go back to the version before. */
export type GuardOrder = "end" | "back";

/** What the service and the roll-out of a deployment that it runs exchange. */
export interface RolloutExchange {
  /** What the roll-out has reported so far. */
  readonly read: (deploymentId: number) => RolloutReport & {
    /** Whether the new version is live, and only watched. */
    readonly isGuarding: boolean;
  };
  /** @throws the system's error */
  readonly order: (deploymentId: number, order: GuardOrder) => void;
  /** Removes what was exchanged. */
  readonly tidy: (deploymentId: number) => void;
}

/** The commit that is live when the script of a deployment has succeeded. */
export function liveCommit(of: Pick<Deployment, "commit" | "checkedOutCommit">): string {
  return of.checkedOutCommit ?? of.commit;
}

/** How a run of the deploy script ended. */
export interface Ending {
  readonly state: "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted";
  readonly exitCode: number | null;
  readonly problem: Problem | null;
}

/** The script never ran, because the machine ran short of something at the last moment. */
export interface NotStarted {
  readonly state: "not_started";
  readonly detail: string;
}

/** A script that is running. */
export interface Run {
  /** Resolves when the script has ended and its output was read. Never rejects. */
  readonly ended: Promise<Ending | NotStarted>;
  /** Ends the script early: asks it, then kills it. The first reason is the one recorded. */
  readonly end: (reason: "cancelled" | "interrupted", graceMs: number) => void;
}

export type Start =
  | { readonly kind: "started"; readonly run: Run }
  /** It cannot run: the deployment has failed, and `problem` says what to fix. */
  | { readonly kind: "refused"; readonly problem: Problem }
  /** It need not run. */
  | { readonly kind: "skipped"; readonly reason: string }
  /** It goes back into the queue, and is tried again later. */
  | { readonly kind: "wait"; readonly reason: string }
  /** The machine is short of something at the moment: a later attempt can work. */
  | { readonly kind: "try-again"; readonly detail: string };

/** What is left of a run after its service died. */
export type Adoption =
  | { readonly kind: "alive"; readonly run: Run }
  | { readonly kind: "ended"; readonly ending: Ending }
  | { readonly kind: "gone" };

/** What deployments need from the stage that runs scripts. */
export interface Runner {
  readonly start: (deployment: Deployment) => Promise<Start>;
  readonly adopt: (deployment: Deployment) => Promise<Adoption>;
  /** Removes what a run left, except its log. Call it when the deployment is recorded. */
  readonly tidy: (deploymentId: number) => void;
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
  const row = store.get(`SELECT ${columns} FROM deployments ${clauses}`, ...values);
  return row ? toDeployment(row) : null;
}

/** @returns the deployment with `id`, or null if there never was one or it is pruned */
export function findDeployment(store: Store, id: number): Deployment | null {
  return selectDeployment(store, "WHERE id = ?", id);
}

/** SQL for the last place in the queue. */
export const lastInQueue = "(SELECT coalesce(max(queue_order), 0) + 1 FROM deployments)";

export type NewDeployment = Pick<
  Deployment,
  "trigger" | "ref" | "before" | "commit" | "repository" | "host" | "deliveryId" | "pusher" | "requestedBy"
>;

/** Adds a deployment at the end of the queue. Call it in a transaction. */
export function insertDeployment(store: Store, deployment: NewDeployment): Deployment {
  const { trigger, ref, before, commit, repository, host, deliveryId, pusher, requestedBy } = deployment;
  const row = store.get(
    `INSERT INTO deployments (project, trigger, ref, before_commit, commit_id, repository, host, delivery_id, pusher,
       requested_by, state, queue_order, created_at_ms) VALUES ($project, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'queued', ${lastInQueue}, ?) RETURNING ${columns}`,
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
