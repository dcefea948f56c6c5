import type { Branch } from "#config/settings";

/** The only two branches that are deployed: matched to the letter, nothing is normalised. */
export const mainRefs = ["refs/heads/main", "refs/heads/master"] as const;

export type MainRef = (typeof mainRefs)[number];

/** The refs that are deployed if BRANCH is `branch`; null, if BRANCH is not set: both. */
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
  /** What the branch pointed at before; null if it did not exist or the host does not say. */
  readonly before: CommitId | null;
  readonly commit: CommitId;
  /** `owner/name`, null if the host does not say, or says what no log should show. */
  readonly repository: string | null;
  /** The login name of who pushed, by the signed payload; printable and bounded, for people: never for a decision. */
  readonly pusher: string | null;
  /** SHA-256, in hex, of what was signed: the same delivery again has the same. */
  readonly digest: string;
  /** The host's own id of the delivery, unsigned: good for a log, never for a decision. */
  readonly deliveryId: string | null;
}

/** The name of a git host, also of one that this version does not know. */
export const hostPattern = /^[a-z][a-z-]{0,39}$/;

/** A delivery's id that is harmless in a log. */
export const deliveryIdPattern = /^[A-Za-z0-9-]{1,64}$/;

/** The user agent of what Hotpush itself delivers, which says nothing of a git host. */
export const ownAgent = "GitHub-Hookshot/hotpush";

/** A deployment, as the sender of a push sees it. */
export interface DeploymentSummary {
  readonly id: number;
  readonly ref: string;
  readonly commit: string;
  readonly state: string;
}

/** A push that is on disk, and that the process which deploys has not recorded yet. */
export interface StoredPush {
  readonly kind: "stored";
  /** The name of its file in the spool. */
  readonly delivery: string;
}

/** The most of a kind that `front` says at once to `run`. */
export const mostOffered = 50;

/**
 * A call of `front` to `run`, with a body in JSON, over the socket of `run`. It can offer what is in the spool,
 * ask for a dry run, and note the use of a secret.
 *
 * @returns null if there is no answer
 */
export type AskRun = (path: string, body: string) => Promise<object | null>;

/** What `run` has recorded of the pushes in the spool that `front` offers. Their files may be deleted. */
export interface FrontAnswers {
  /** `record` is null if the push was refused, or was recorded before this process was started. */
  readonly pushes: readonly { readonly id: string; readonly record: PushRecord | null }[];
}

/** The id of a push in the spool. */
const spoolId = /^[0-9a-f]{32}$/;

/** The name of a push's file in the spool. While it is written, `.new` follows. */
export function spoolName(id: string): string {
  return `${id}.push`;
}

/** The id of the push in a file of the spool, by its name; null if it is no finished one. */
export function spooledIdOf(name: string): string | null {
  const id = name.replace(/\.push$/, "");
  return name === spoolName(id) && spoolId.test(id) ? id : null;
}

/**
 * The result of a push. A duplicate was recorded before; its `detail` says how to deploy it again. That of an accepted one
 * says why it waits, if the queue is paused.
 */
export type PushRecord = { readonly deployment: DeploymentSummary } & (
  | { readonly kind: "accepted"; readonly detail?: string }
  | { readonly kind: "duplicate"; readonly detail: string }
);

type When = "now" | "after" | "resumed";

/** The result that a push would have had without the dry run, as one of these members. */
export type Would =
  /** `after` is the running deployment, which would end first. `resumed`: the queue is paused. */
  | { readonly deploy: { ref: string; commit: string; when: When; after?: DeploymentSummary } }
  | { readonly duplicate: { readonly deployment: DeploymentSummary; readonly detail: string } }
  | { readonly ignore: { readonly reason: string; readonly detail: string } }
  /** It would be recorded, and fail at once: the script could not be started. */
  | { readonly fail: { readonly code: string; readonly detail: string } };

/** True for a full commit id; the all-zero id, which stands for "no commit", is none. */
export function isCommitId(text: unknown): text is CommitId {
  return typeof text === "string" && /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) && !isNullId(text);
}

/** True for git's "no commit": 40 or 64 zeros. */
export function isNullId(text: string): boolean {
  return /^0+$/.test(text);
}

/** The name of a repository that is harmless in a log and on a page. */
export const repositoryPattern = /^(?=.{1,256}$)[\w.~+-]+(?:\/[\w.~+-]+)*$/;

export function isPlainRepository(name: unknown): name is string {
  return typeof name === "string" && repositoryPattern.test(name);
}

/** The member of a body that makes its push a dry run. It is signed with the rest, and no git host sends it. */
const dryRunMember = '"hotpush":{"dryRun":true}';

/**
 * Reads the marker of a dry run. Anything else in its place is malformed and not an ordinary push: its author meant that
 * nothing should happen, so a typo must not deploy.
 */
export function readDryRun(payload: JsonObject): "ordinary" | "dry-run" | "malformed" {
  if (!Object.hasOwn(payload, "hotpush")) return "ordinary";
  const { hotpush } = payload;
  const isAlone = isJsonObject(hotpush) && Object.keys(hotpush).join() === "dryRun";
  if (!isAlone || typeof hotpush.dryRun !== "boolean") return "malformed";
  return hotpush.dryRun ? "dry-run" : "ordinary";
}

/** The body byte for byte as it would be without the marker, so that it is recognised as a duplicate. */
export function withoutDryRun(body: Buffer): Buffer {
  const marker = `,${dryRunMember}`;
  const start = body.lastIndexOf(marker);
  if (start < 0) return body;
  return Buffer.concat([body.subarray(0, start), body.subarray(start + marker.length)]);
}

/** A parsed JSON object of unknown content. Only its own properties are ever read. */
export type JsonObject = { readonly [key: string]: unknown };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A commit as people name it. */
export function shortCommit(commit: string): string {
  return commit.slice(0, 7);
}

/** The branch of a ref such as `refs/heads/main`. */
export function branchOf(ref: string): string {
  return ref.replace(/^refs\/heads\//, "");
}
