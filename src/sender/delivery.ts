import { dryRunMember } from "../receiver/dry-run.ts";
import type { GitHost } from "../setup/git-host.ts";
import { pushBody } from "./push-payload.ts";
import type { RepositoryHead } from "./repository-head.ts";
import { deliveryHeaders, type Event } from "./sign.ts";

/** A request as a git host sends it. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface DeliveryOptions {
  readonly host: GitHost;
  readonly event: Event;
  readonly secret: string;
  readonly isDryRun: boolean;
}

/** What is no JSON object can't carry the mark of a dry run. */
export class NotMarkableError extends Error {
  override readonly name = "NotMarkableError";
}

/** Makes and signs the body of a push of `head`, or of a ping. */
export function makeDelivery(head: RepositoryHead | null, options: DeliveryOptions): Delivery {
  const { host, event } = options;
  const text = event === "ping" || head === null ? pingBody(host) : pushBody(host, head, new Date());
  return signDelivery(Buffer.from(text), options);
}

/**
 * Signs a body as it stands; for a dry run, with its mark in it.
 *
 * @throws NotMarkableError where it is to be marked and is no JSON object
 */
export function signDelivery(body: Buffer, { host, event, secret, isDryRun }: DeliveryOptions): Delivery {
  const sent = isDryRun ? Buffer.from(withDryRun(body.toString("utf8"))) : body;
  return { body: sent, headers: deliveryHeaders(host, event, sent, secret) };
}

/** The mark goes to the very end, so that what was there stays byte for byte what it was. */
export function withDryRun(text: string): string {
  const end = text.lastIndexOf("}");
  if (end < 0 || !isObject(text)) {
    throw new NotMarkableError("The body is no JSON object, so it cannot be marked as a dry run.");
  }
  const isEmpty = /^\s*\{\s*$/.test(text.slice(0, end));
  return `${text.slice(0, end)}${isEmpty ? "" : ","}${dryRunMember}${text.slice(end)}`;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

function pingBody(host: GitHost): string {
  if (host === "bitbucket-data-center") return '{"test":true}';
  return JSON.stringify({ zen: "Keep it logically awesome.", hook_id: 1, hook: { events: ["push"] } });
}
