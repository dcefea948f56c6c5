import type { IncomingHttpHeaders } from "node:http";

/** A parsed JSON object of unknown content. Only its own properties are ever read. */
export type JsonObject = { readonly [key: string]: unknown };

/** What is particular to one git host: the headers it sends, how it signs, how its payload reads. */
export interface Host {
  /** Lower case, as in a log line: `github`, `bitbucket-cloud`. */
  readonly name: string;
  /** Lower-case name of the header that names the event, null if there is none. */
  readonly eventHeader: string | null;
  /** Whether the headers are this host's; without it, the presence of the event header decides. */
  readonly recognises?: (headers: IncomingHttpHeaders) => boolean;
  /** Lower-case name of the header with the host's id of the delivery, null if there is none. */
  readonly deliveryHeader: string | null;
  /** The signature that the headers claim, before a byte of the body is read. */
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

/** HMAC-SHA256 over the body; if several headers carry one, each must be right. */
export interface BodySignature {
  readonly kind: "body";
  readonly digests: readonly Buffer[];
}

/** Standard Webhooks 1.0.0: HMAC-SHA256 over `id.timestamp.body`; one of several signatures must be right. */
export interface StandardWebhookSignature {
  readonly kind: "standard-webhooks";
  readonly id: string;
  readonly timestamp: string;
  readonly digests: readonly Buffer[];
}

/** What a payload means to a deployment service. */
export type Reading =
  | { readonly kind: "ping" }
  | { readonly kind: "other-event" }
  | { readonly kind: "unusable"; readonly field: string; readonly expected: string }
  | {
      readonly kind: "push";
      readonly changes: readonly RefChange[];
      readonly repository: string | null;
      /** The login name of the person who pushed, as sent. */
      readonly pusher: string | null;
    };

/** One ref that a push moved, as sent: full ref name, ids in hex, null if the host sends none. */
export interface RefChange {
  readonly ref: string;
  readonly before: string | null;
  /** null or all zeros: the ref was deleted */
  readonly after: string | null;
}

/** The reading of an event that is neither a push nor a ping. */
export const otherEvent: Reading = { kind: "other-event" };

/** The reading of a payload whose `field` (slash path from its root) is not as `expected`. */
export function unusable(field: string, expected: string): Reading {
  return { kind: "unusable", field, expected };
}

/** A host that sends no HMAC-SHA256 over the body: every delivery is refused with `help`. */
export function unsupportedHost(name: string, help: string, recognises: NonNullable<Host["recognises"]>) {
  const claim: SignatureClaim = { kind: "unsupported", help };
  const read = () => otherEvent;
  return { name, eventHeader: null, recognises, deliveryHeader: null, claimSignature: () => claim, read };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value at `path`, following own properties only, so that `__proto__` is an ordinary name. */
export function valueAt(payload: JsonObject, ...path: readonly string[]): unknown {
  let value: unknown = payload;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The string at `path`, or null if there is none. */
export function textAt(payload: JsonObject, ...path: readonly string[]): string | null {
  const value = valueAt(payload, ...path);
  return typeof value === "string" ? value : null;
}
