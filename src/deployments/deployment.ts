import type { Problem } from "../problems.ts";

export type Trigger = "push" | "catch-up" | "manual" | "rollback";

export type DeploymentState =
  | "queued"
  | "running"
  | "succeeded"
  | "failed"
  | "timed_out"
  | "cancelled"
  | "superseded"
  | "interrupted";

/** A deployment as it is recorded. Times are in milliseconds since 1970, for people: no decision depends on them. */
export interface Deployment {
  readonly id: number;
  readonly trigger: Trigger;
  readonly ref: string;
  readonly before: string | null;
  /** The commit that was asked for. */
  readonly commit: string;
  /** What its script checked out, which may be newer than `commit`; null while that is not known. */
  readonly checkedOutCommit: string | null;
  /** Subject and author of the commit checked out; for a roll back, of `commit`. Untrusted, bounded, printable. */
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
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
}

/** What git reports about the source of a deployment. */
export type Source = Pick<Deployment, "checkedOutCommit" | "subject" | "author">;

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
  /** The machine is short of something at the moment: a later attempt can work. */
  | { readonly kind: "try-again"; readonly detail: string };

/** What is left of a run after its service died. */
export type Adoption =
  | { readonly kind: "alive"; readonly run: Run }
  | { readonly kind: "ended"; readonly ending: Ending }
  | { readonly kind: "gone" };

/** What the remote of the repository answered: the commit that a branch is at, or why that is not known. */
export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string };

/** What deployments need from the stage that runs scripts. */
export interface Runner {
  readonly start: (deployment: Deployment) => Promise<Start>;
  readonly adopt: (deployment: Deployment) => Promise<Adoption>;
  /** Removes what a run left, except its log. Call it when the deployment is recorded. */
  readonly tidy: (deploymentId: number) => void;
}
