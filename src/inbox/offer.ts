import type { SecretSlot } from "../config/secret.ts";
import type { Push, PushRecord, Would } from "../receiver/push.ts";

/** A verified push that waits in the inbox of `receive` until `run` has recorded it. */
export interface Offer {
  /** Its place in the inbox: later pushes have higher ones. */
  readonly seq: number;
  readonly project: string;
  readonly push: Push;
}

/** A push whose sender asks what would happen to it. It is not stored. */
export interface OfferedDryRun {
  readonly id: number;
  readonly project: string;
  readonly push: Push;
}

/** A delivery that one of the secrets of a project has signed. */
export interface OfferedSecretUse {
  readonly project: string;
  readonly slot: SecretSlot;
  readonly host: string;
  readonly deliveryId: string | null;
}

/** What `run` sends to take the next pushes: one request does both, so nothing is answered twice or forgotten. */
export interface TakeRequest {
  /** The inbox that the rest is about; null: not known yet. */
  readonly inbox: string | null;
  /** Every push up to this one is recorded: what is offered comes after it. */
  readonly recordedSeq: number;
  /** Every push up to this one is recorded on disk, and leaves the inbox. */
  readonly syncedSeq: number;
  readonly answers: readonly { readonly seq: number; readonly record: PushRecord }[];
  readonly dryRuns: readonly { readonly id: number; readonly would: Would | null }[];
}

export interface TakeResponse {
  readonly inbox: string;
  readonly pushes: readonly Offer[];
  readonly dryRuns: readonly OfferedDryRun[];
  readonly secretUses: readonly OfferedSecretUse[];
}

/** The most of each kind in one response. They are recorded at once, and nothing else happens meanwhile. */
export const mostOffered = 20;

/** How long a request to take waits for a push, in milliseconds. */
export const takeWaitMs = 20_000;

/** The same as long as pushes that are recorded are not on disk there: the next request says that they are. */
export const unsyncedWaitMs = 1_500;
