import { createHmac, randomUUID } from "node:crypto";
import { dryRunMember } from "#deployments/push";
import { CommandError } from "#problems";
import type { RepositoryHead } from "./repository-head.ts";

export type SentEvent = "push" | "ping";

/** A signed request, as a git host sends it. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface SigningOptions {
  readonly event: SentEvent;
  readonly secret: string;
  readonly isDryRun: boolean;
}

/** Makes and signs a push of `head`, or a ping. */
export function makeDelivery(head: RepositoryHead | null, options: SigningOptions): Delivery {
  const payload = options.event === "ping" || head === null ? pingPayload : pushPayload(head, new Date());
  return signDelivery(Buffer.from(JSON.stringify(payload)), options);
}

/**
 * Signs a body as it stands, or with the mark of a dry run in it: as GitHub does, or as Standard Webhooks 1.0.0 says if the
 * secret is a signing token (`whsec_…`) of GitLab, which signs pushes and nothing else.
 *
 * @throws CommandError if it must be marked and is not a JSON object
 */
export function signDelivery(body: Buffer, { event, secret, isDryRun }: SigningOptions): Delivery {
  const sent = isDryRun ? Buffer.from(withDryRun(body.toString("utf8"))) : body;
  const isToken = event === "push" && secret.startsWith("whsec_");
  const headers = isToken ? standardWebhooksHeaders(sent, secret) : githubHeaders(event, sent, secret);
  return { body: sent, headers: { "content-type": "application/json", ...headers } };
}

/** Adds the mark at the very end, so that everything before it stays byte for byte what it was. */
export function withDryRun(text: string): string {
  if (!isObject(text)) {
    throw new CommandError("The body is not a JSON object, so it cannot be marked as a dry run.");
  }
  const end = text.lastIndexOf("}");
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

const pingPayload = { zen: "Keep it logically awesome.", hook_id: 1, hook: { events: ["push"] } };

/**
 * GitHub's push with the two members that GitLab's has as well. Before and after are the same commit, as in the test
 * delivery of Gitea: no step from one commit to another is claimed, so it is deployed however often it is sent. Nobody is named as the pusher, because nobody pushed.
 */
function pushPayload({ ref, commit, subject, author, repository }: RepositoryHead, now: Date) {
  return {
    object_kind: "push",
    ref,
    before: commit,
    after: commit,
    repository: { full_name: repository },
    project: { path_with_namespace: repository },
    head_commit: { id: commit, message: subject, timestamp: now.toISOString(), author },
  };
}

function githubHeaders(event: SentEvent, body: Buffer, secret: string): Record<string, string> {
  return {
    "user-agent": "GitHub-Hookshot/hotpush",
    "x-github-event": event,
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
}

/** Signs `<id>.<timestamp>.<body>`; the key is the base64 text after `whsec_`. */
function standardWebhooksHeaders(body: Buffer, secret: string): Record<string, string> {
  const id = randomUUID();
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const digest = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return {
    "user-agent": "GitLab/hotpush",
    "x-gitlab-event": "Push Hook",
    "idempotency-key": id,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${digest}`,
  };
}
