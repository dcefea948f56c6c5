import type { Problem } from "#problems";
import type { DeploymentReport } from "#rollout/report";
import type { SiteRequests } from "#site-requests";

export type Trigger = "push" | "catch-up" | "image" | "manual" | "rollback";

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

/** Every legal transition of a deployment. No other happens. */
export const transitions: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  queued: ["running", "superseded", "cancelled"],
  // back to queued: the script could not be started for the moment
  running: ["succeeded", "failed", "timed_out", "cancelled", "interrupted", "skipped", "queued"],
  // an interrupted deployment runs again, unless a newer push made it pointless or it was interrupted too often
  interrupted: ["queued", "superseded", "failed"],
  // "Redeliver" at the git host means "try again"
  failed: ["queued"],
  timed_out: ["queued"],
  cancelled: ["queued"],
  succeeded: [],
  skipped: [],
  superseded: [],
};

/** The end of a sentence that begins with a deployment. */
export const stateTexts: Readonly<Record<DeploymentState, string>> = {
  queued: "is queued",
  running: "started",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
  superseded: "was superseded",
  interrupted: "was interrupted",
  skipped: "was skipped",
};

/** True if nothing more happens to a deployment in this state by itself. */
export function isFinished(state: DeploymentState): boolean {
  return state !== "queued" && state !== "running" && state !== "interrupted";
}

/**
 * A deployment as it is recorded. Times are in milliseconds since 1970, for people. Two decisions depend on them: a push waits for its
 * checks for an hour from `createdAtMs`, and a roll back asks by `liveAtMs` whether what is live is recorded as a good version. A
 * message quotes the lines since `startedAtMs`.
 */
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
  /** How often it was started, counted before each start; one that waits again takes that back. */
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

/** To end the guard with the verdict so far, or to go back to the version before. */
export type GuardOrder = "end" | "back";

/** What the service and the roll-out of a deployment that it runs exchange. */
export interface RolloutExchange {
  /** What the roll-out has reported so far. */
  readonly read: (deploymentId: number) => DeploymentReport;
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
  readonly state: "succeeded" | "failed" | "timed_out" | "cancelled" | "interrupted" | "skipped";
  readonly exitCode: number | null;
  readonly problem: Problem | null;
  /** Why the script was not run, if it was skipped. */
  readonly skipReason?: string;
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

export type Start = { readonly kind: "started"; readonly run: Run } | NotDeployed;

/** Why the script of a deployment does not run. */
export type NotDeployed =
  /** It cannot: the deployment has failed, and `problem` says what to fix. */
  | { readonly kind: "refused"; readonly problem: Problem }
  /** It need not. */
  | { readonly kind: "skipped"; readonly reason: string }
  /** It goes back into the queue. Without `rest`, until the remote can be asked again. */
  | { readonly kind: "wait"; readonly reason: string; readonly rest?: Rest };

/** How long a deployment that waits is not looked at. The shorter time counts if a signed delivery has come since the look. */
export interface Rest {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** The machine is short of something at the moment: a later attempt can work. */
export const soon: Rest = { leastMs: 2_000, mostMs: 2_000 };

/** What is left of a run after its service died. */
export type Adoption =
  | { readonly kind: "alive"; readonly run: Run }
  | { readonly kind: "ended"; readonly ending: Ending }
  /** `hasBegun`: whether its script was started. */
  | { readonly kind: "gone"; readonly hasBegun: boolean };

/** What deployments need from the stage that runs scripts. */
export interface Runner {
  /** @param signal its abort ends what comes before the script: then the deployment waits */
  readonly start: (deployment: Deployment, signal: AbortSignal) => Promise<Start>;
  readonly adopt: (deployment: Deployment) => Promise<Adoption>;
  /** Removes what a run left, except its log. Call it when the deployment is recorded. */
  readonly tidy: (deploymentId: number) => void;
}
