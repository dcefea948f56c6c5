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

/** One deployment as it is recorded. Times are milliseconds since 1970, for people: no decision rests on them. */
export interface Deployment {
  readonly id: number;
  readonly trigger: Trigger;
  readonly ref: string;
  readonly before: string | null;
  /** The commit that was asked for. */
  readonly commit: string;
  /** What was checked out when its script ended, which may be newer than `commit`; null while that is not known. */
  readonly checkedOutCommit: string | null;
  /** Subject and author of the commit checked out; of `commit` for a roll back. Untrusted, bounded, printable. */
  readonly subject: string | null;
  readonly author: string | null;
  /** Who pushed, by the signed payload. Untrusted, bounded, printable. */
  readonly pusher: string | null;
  /** Who asked for it, as the command reported: no proof. Untrusted, bounded, printable. */
  readonly requestedBy: string | null;
  readonly cancelledBy: string | null;
  readonly repository: string | null;
  readonly host: string | null;
  readonly deliveryId: string | null;
  readonly state: DeploymentState;
  /** How often the script was started for it, counted before each start. */
  readonly attempts: number;
  readonly supersededBy: number | null;
  readonly exitCode: number | null;
  /** Why it ended as it did, for a person; null while it has not ended, or where it simply succeeded. */
  readonly problem: Problem | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
}

/** What git says of the sources of a deployment. */
export type Source = Pick<Deployment, "checkedOutCommit" | "subject" | "author">;

/** The commit that a deployment brings when its script succeeds. */
export function liveCommit({
  commit,
  checkedOutCommit,
}: Pick<Deployment, "commit" | "checkedOutCommit">): string {
  return checkedOutCommit ?? commit;
}

/** How a run of the deploy script ended. */
export interface Ending {
  readonly state: "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted";
  readonly exitCode: number | null;
  readonly problem: Problem | null;
}

/** The script never ran: the machine was short of something at the last moment. */
export interface NotStarted {
  readonly state: "not_started";
  readonly detail: string;
}

/** A script that is running. */
export interface Run {
  /** Resolves when the script has ended and its output was read. Never rejects. */
  readonly ended: Promise<Ending | NotStarted>;
  /** Ends the script early: asked, then forced. The first reason to end is the one recorded. */
  readonly end: (reason: "cancelled" | "interrupted", graceMs: number) => void;
}

export type Start =
  | { readonly kind: "started"; readonly run: Run }
  /** It cannot run as things are: the deployment has failed, and `problem` says what to mend. */
  | { readonly kind: "refused"; readonly problem: Problem }
  /** The machine is short of something for the moment: worth another try, and no fault of the deployment's. */
  | { readonly kind: "try-again"; readonly detail: string };

/** What is left of a run whose service died. */
export type Adoption =
  | { readonly kind: "alive"; readonly run: Run }
  | { readonly kind: "ended"; readonly ending: Ending }
  | { readonly kind: "gone" };

/** What the remote of the repository answered: the commit that a branch is at, or why that is not known. */
export type RemoteHead =
  | { readonly kind: "head"; readonly commit: string }
  | { readonly kind: "unknown"; readonly detail: string };

/** What deployments need of the stage that runs scripts. */
export interface Runner {
  readonly start: (deployment: Deployment) => Promise<Start>;
  readonly adopt: (deployment: Deployment) => Promise<Adoption>;
  /** Called when a deployment's record is finished: nothing of the run is needed any more but its log. */
  readonly tidy: (deploymentId: number) => void;
}
