import { createHmac, randomUUID } from "node:crypto";
import type { GitHost } from "../setup/git-host.ts";

export type Event = "push" | "ping";

/** Hosts that have a ping of their own; the test button of the others sends a real push. */
export const pingingHosts: readonly GitHost[] = ["github", "bitbucket-data-center"];

/**
 * The headers of a delivery of `host`, its signature over `body` with them: which name, which prefix and which encoding
 * is the host's own way, as are the names of the events.
 */
export function deliveryHeaders(
  host: GitHost,
  event: Event,
  body: Buffer,
  secret: string,
): Record<string, string> {
  const id = randomUUID();
  const digest = createHmac("sha256", secret).update(body).digest("hex");
  return { "content-type": "application/json", ...makers[host]({ event, id, digest, body, secret }) };
}

interface Signed {
  readonly event: Event;
  readonly id: string;
  /** HMAC-SHA256 of the body, in hex. */
  readonly digest: string;
  readonly body: Buffer;
  readonly secret: string;
}

type MakeHeaders = (signed: Signed) => Record<string, string>;

const makers: Readonly<Record<GitHost, MakeHeaders>> = {
  github: (signed) => ({ "user-agent": "GitHub-Hookshot/hotpush", ...githubHeaders(signed) }),
  gitea: giteaHeaders,
  forgejo: (signed) => ({
    "x-forgejo-event": signed.event,
    "x-forgejo-delivery": signed.id,
    "x-forgejo-signature": signed.digest,
    ...giteaHeaders(signed),
  }),
  gogs: (signed) => ({
    "user-agent": "GogsServer",
    "x-github-delivery": signed.id,
    "x-github-event": signed.event,
    ...gogsHeaders(signed),
  }),
  gitlab: ({ id, body, secret }) => {
    const timestamp = String(Math.floor(Date.now() / 1_000));
    return {
      "user-agent": "GitLab/19.1.0",
      "x-gitlab-event": "Push Hook",
      "idempotency-key": id,
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${standardWebhookDigest(`${id}.${timestamp}.`, body, secret)}`,
    };
  },
  bitbucket: ({ id, digest }) => ({
    "user-agent": "Bitbucket-Webhooks/2.0",
    "x-event-key": "repo:push",
    "x-request-uuid": id,
    "x-attempt-number": "1",
    "x-hub-signature": `sha256=${digest}`,
  }),
  "bitbucket-data-center": ({ event, id, digest }) => ({
    "x-event-key": event === "ping" ? "diagnostics:ping" : "repo:refs_changed",
    "x-request-id": id,
    "x-hub-signature": `sha256=${digest}`,
  }),
  pagure: ({ digest }) => ({
    "user-agent": "python-requests/2.32.3",
    "x-pagure-topic": "git.receive",
    "x-pagure-signature-256": digest,
  }),
  // The trigger is signed in the body, and the header has to say the same.
  gitness: ({ body, digest }) => ({
    "user-agent": "Gitness/3.0.0",
    "x-gitness-trigger": /"trigger":\s*"(\w+)"/.exec(body.toString())?.[1] ?? "branch_updated",
    "x-gitness-signature": digest,
  }),
};

function githubHeaders({ event, id, digest }: Signed): Record<string, string> {
  return { "x-github-event": event, "x-github-delivery": id, "x-hub-signature-256": `sha256=${digest}` };
}

function gogsHeaders({ event, id, digest }: Signed): Record<string, string> {
  return { "x-gogs-event": event, "x-gogs-delivery": id, "x-gogs-signature": digest };
}

function giteaHeaders(signed: Signed): Record<string, string> {
  return {
    "user-agent": "Go-http-client/1.1",
    "x-gitea-event": signed.event,
    "x-gitea-delivery": signed.id,
    "x-gitea-signature": signed.digest,
    ...gogsHeaders(signed),
    ...githubHeaders(signed),
  };
}

/** Standard Webhooks 1.0.0: the key is what follows `whsec_`, in base64. */
function standardWebhookDigest(start: string, body: Buffer, secret: string): string {
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice("whsec_".length), "base64") : secret;
  return createHmac("sha256", key).update(start).update(body).digest("base64");
}
