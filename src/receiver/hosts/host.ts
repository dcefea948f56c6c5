import type { IncomingHttpHeaders } from "node:http";

/** A parsed JSON object of unknown content. Only own properties of it are ever read. */
export type JsonObject = { readonly [key: string]: unknown };

/** What is particular to one git host: the headers it sends, how it signs, how its payload reads. */
export interface Host {
  /** Lower case, as in a log line: `github`, `bitbucket-cloud`. */
  readonly name: string;
  /** Lower-case name of the header that names the event, null where there is none. */
  readonly eventHeader: string | null;
  /** Whether the headers are this host's; without it, the presence of the event header says so. */
  readonly recognises?: (headers: IncomingHttpHeaders) => boolean;
  /** Lower-case name of the header with the host's id of the delivery, null where there is none. */
  readonly deliveryHeader: string | null;
  /** What the headers claim the signature to be, before a byte of the body was read. */
  readonly claimSignature: (headers: IncomingHttpHeaders) => SignatureClaim;
  /** What a verified payload says. Never throws, whatever the payload. */
  readonly read: (event: string, payload: JsonObject) => Reading;
}

/** Signatures as sent, decoded to bytes but not yet compared with anything. */
export type SignatureClaim =
  | { readonly kind: "missing" }
  | { readonly kind: "malformed"; readonly reason: string }
  | { readonly kind: "unsupported"; readonly help: string }
  | BodySignature
  | StandardWebhookSignature;

/** HMAC-SHA256 over the body; where several headers carry one, every one has to be right. */
export interface BodySignature {
  readonly kind: "body";
  readonly digests: readonly Buffer[];
}

/** Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`; of several signatures one has to be right. */
export interface StandardWebhookSignature {
  readonly kind: "standard-webhooks";
  readonly id: string;
  readonly timestamp: string;
  readonly digests: readonly Buffer[];
}

/** What a payload means to a deployment service. */
export type Reading =
  | { readonly kind: "ping" }
  | { readonly kind: "other-event"; readonly event: string }
  | { readonly kind: "unusable"; readonly field: string; readonly expected: string }
  | {
      readonly kind: "push";
      readonly changes: readonly RefChange[];
      readonly repository: string | null;
      /** The login name of who pushed, as sent. */
      readonly pusher: string | null;
    };

/** One ref that a push moved, as sent: full ref name, ids in hex, null where the host sends none. */
export interface RefChange {
  readonly ref: string;
  readonly before: string | null;
  /** null or all zeros: the ref was deleted */
  readonly after: string | null;
}
