import type { Branch } from "../config.ts";

/** The only two branches that are deployed: matched to the letter, nothing is normalised. */
export const mainRefs = ["refs/heads/main", "refs/heads/master"] as const;

export type MainRef = (typeof mainRefs)[number];

/** The refs that are deployed if BRANCH is `branch`; null, as BRANCH is not set: both. */
export function refsOf(branch: Branch | null): readonly MainRef[] {
  return branch === null ? mainRefs : [`refs/heads/${branch}`];
}

declare const commitId: unique symbol;

/** 40 (SHA-1) or 64 (SHA-256 repositories) lower-case hex digits, not all zero. */
export type CommitId = string & { readonly [commitId]: true };

/** A push whose signature was verified and that moved a main branch: all that later stages ever see of a request. */
export interface Push {
  readonly host: string;
  readonly ref: MainRef;
  /** What the branch pointed at before; null where it did not exist or the host does not say. */
  readonly before: CommitId | null;
  readonly commit: CommitId;
  /** `owner/name`, null where the host does not say or says what no log should show. */
  readonly repository: string | null;
  /** The login name of who pushed, by the signed payload; printable and bounded, for people: never for a decision. */
  readonly pusher: string | null;
  /** SHA-256, in hex, of what was signed: the same delivery again has the same. */
  readonly digest: string;
  /** The host's own id of the delivery, unsigned: good for a log, never for a decision. */
  readonly deliveryId: string | null;
}

/** A deployment, as the sender of a push sees it. */
export interface DeploymentSummary {
  readonly id: number;
  readonly ref: string;
  readonly commit: string;
  readonly state: string;
}

/** What became of a push. A duplicate was recorded before; its `detail` says how to deploy it again. */
export type PushRecord = { readonly deployment: DeploymentSummary } & (
  | { readonly kind: "accepted" }
  | { readonly kind: "duplicate"; readonly detail: string }
);

export function isMainRef(ref: string): ref is MainRef {
  return (mainRefs as readonly string[]).includes(ref);
}

/** True for a full commit id; the all-zero id, which stands for "no commit", is none. */
export function isCommitId(text: unknown): text is CommitId {
  return typeof text === "string" && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) && !isNullId(text);
}

/** True for git's "no commit": nothing but zeros, 40 of them or 64. */
export function isNullId(text: string): boolean {
  return /^0+$/.test(text);
}
