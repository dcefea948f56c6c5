import type { IncomingHttpHeaders } from "node:http";
import { type CommitId, isCommitId, isJsonObject, isNullId, type JsonObject } from "#deployments/push";
import { readSignature, type SignatureClaim } from "./verify-signature.ts";

/** What is particular to one git host: the headers that it sends, how it signs, and where its push has what. */
export interface Host {
  /** Lower case, as in a log line: `github`, `bitbucket-cloud`. */
  readonly name: string;
  /** The lower-case name of the header that names the event; null: there is none. */
  readonly eventHeader: string | null;
  /** Another header that all its deliveries have, if that of the event is not enough to recognise it. */
  readonly ownHeader?: string;
  /** The header with the host's id of the delivery. */
  readonly deliveryHeader?: string;
  /** Headers that carry an HMAC-SHA256. */
  readonly signatureHeaders: readonly string[];
  /** Why a delivery without a signature is refused, if it has the header `sent`. */
  readonly help?: { readonly sent: string; readonly text: string };
  readonly pingEvent?: string;
  /** null: nothing of its body is read. */
  readonly push: PushShape | null;
}

/** Where a push has what. A path of members is joined by full stops. */
interface PushShape {
  readonly events: RegExp;
  /** The member that repeats the event. It counts before the header, which is not signed. */
  readonly event?: string;
  /** The list of refs that the push moved; without it, the payload is the only entry. */
  readonly list?: string;
  /** In an entry: the ref, and the commits before and after. The first that is there counts. */
  readonly ref: readonly string[];
  readonly before: string;
  readonly after: string;
  /** Whether an entry without a commit after it has deleted its ref. All other hosts send zeros. */
  readonly isDeleted?: (entry: JsonObject, event: string) => boolean;
  /** The full name of the ref, if the host sends a short one. */
  readonly fullRef?: (name: string, entry: JsonObject) => string;
  /** Joined by a slash. */
  readonly repository: readonly string[];
  /** The first that is there counts. */
  readonly pusher: readonly string[];
}

/** GitHub's, which Gitea, Forgejo and Gogs send too, with their own name of the login. */
const githubPush: PushShape = {
  events: /^push$/,
  ref: ["ref"],
  before: "before",
  after: "after",
  repository: ["repository.full_name"],
  pusher: ["pusher.login", "pusher.name"],
};

const gitnessPush: PushShape = {
  events: /^(?:branch|tag)_(?:created|updated|deleted)$/,
  event: "trigger",
  ref: ["ref.name"],
  before: "old_sha",
  after: "sha",
  repository: ["repo.path"],
  pusher: ["principal.uid"],
};

/**
 * Gitea also sends the signatures of Gogs and GitHub, Forgejo sends all four, and all carry the same HMAC-SHA256; each one
 * that is there must be right. Without a secret they are sent empty. `X-Hub-Signature` is the old SHA-1 and is not read.
 * https://docs.gitea.com/usage/webhooks, services/webhook/deliver.go
 */
const giteaSignatures = [
  "x-forgejo-signature",
  "x-gitea-signature",
  "x-gogs-signature",
  "x-hub-signature-256",
];

/** A host that sends GitHub's push under headers of its own name. */
function likeGithub(name: string, signatureHeaders: readonly string[], pingEvent?: string): Host {
  return {
    name,
    eventHeader: `x-${name}-event`,
    deliveryHeader: `x-${name}-delivery`,
    signatureHeaders,
    push: githubPush,
    ...(pingEvent && { pingEvent }),
  };
}

/** Gitness, and Gitness as Harness Open Source, which has its own name in the headers. */
function likeGitness(name: string): Host {
  const signatureHeaders = [`x-${name}-signature`];
  return { name, eventHeader: `x-${name}-trigger`, signatureHeaders, push: gitnessPush };
}

/**
 * The git hosts, in the order in which they are tried: Forgejo sends Gitea's headers too, Gitea sends those of Gogs, and all
 * three send GitHub's.
 */
export const gitHosts: readonly Host[] = [
  // Its `create` and `delete` events carry a full ref too, but no `after`: that distinguishes them from a push.
  // The test button of Forgejo, Gitea and Gogs sends a real push whose `before` is its `after`.
  // https://forgejo.org/docs/latest/user/webhooks/, services/webhook/shared/payloader.go
  likeGithub("forgejo", giteaSignatures),
  // https://docs.gitea.com/usage/webhooks, modules/structs/hook.go
  likeGithub("gitea", giteaSignatures),
  // Tags and deletions come as the events `create` and `delete`.
  // https://github.com/gogs/gogs, internal/database/webhook.go and internal/route/api/v1/types/webhook.go
  likeGithub("gogs", giteaSignatures),
  // GitHub and GitHub Enterprise Server. `X-Hub-Signature` carries the old SHA-1 beside the SHA-256 and is not read.
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  likeGithub("github", ["x-hub-signature-256"], "ping"),
  // Only its signing token signs (Standard Webhooks); a plain token may be sent with the signature and counts for nothing.
  // A system hook is sent for many events, which its body names. The test button sends a push like any other.
  // https://docs.gitlab.com/user/project/integrations/webhooks/, lib/gitlab/data_builder/push.rb
  {
    name: "gitlab",
    eventHeader: "x-gitlab-event",
    deliveryHeader: "idempotency-key",
    signatureHeaders: ["webhook-signature"],
    help: {
      sent: "x-gitlab-token",
      text:
        "GitLab sent its secret token as plain text, which does not prove who wrote the body, so it is refused. " +
        "In the webhook's settings clear the secret token and set a signing token (GitLab 19.0 or newer), and give " +
        "Hotpush the same value, whsec_ included, in WEBHOOK_SECRET.",
    },
    push: {
      events: /^(?:tag_)?push$/,
      event: "object_kind",
      ref: ["ref"],
      before: "before",
      after: "after",
      repository: ["project.path_with_namespace"],
      pusher: ["user_username"],
    },
  },
  // Its `X-Hub-Signature` is SHA-256; other hosts send SHA-1 under that name: the prefix decides. Data Center sends
  // `X-Event-Key` as well, but another name for its request id. One push lists every ref that it moved, by short name; a
  // deleted one has no `new`. https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
  {
    name: "bitbucket-cloud",
    eventHeader: "x-event-key",
    ownHeader: "x-request-uuid",
    deliveryHeader: "x-request-uuid",
    signatureHeaders: ["x-hub-signature"],
    push: {
      events: /^repo:push$/,
      list: "push.changes",
      ref: ["new.name", "old.name"],
      before: "old.target.hash",
      after: "new.target.hash",
      isDeleted: (entry) => entry.new === null,
      fullRef: (name, entry) => {
        const type = textAt(entry, "new.type") ?? textAt(entry, "old.type");
        return `refs/${type === "branch" ? "heads" : "tags"}/${name}`;
      },
      repository: ["repository.full_name"],
      pusher: ["actor.nickname"],
    },
  },
  // Data Center and Server. "Test connection" sends `diagnostics:ping`. A mirror's event has the same list of refs.
  // https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html
  {
    name: "bitbucket-data-center",
    eventHeader: "x-event-key",
    deliveryHeader: "x-request-id",
    signatureHeaders: ["x-hub-signature"],
    pingEvent: "diagnostics:ping",
    push: {
      events: /^repo:refs_changed$/,
      event: "eventKey",
      list: "changes",
      ref: ["ref.id"],
      before: "fromHash",
      after: "toHash",
      repository: ["repository.project.key", "repository.slug"],
      pusher: ["actor.name"],
    },
  },
  // Every URL receives every topic. `X-Pagure-Signature` is the old SHA-1 and is not read. The key is the project's own hook
  // token. Pagure removes `refs/heads/` from a ref and leaves any other as it is.
  // https://docs.pagure.org/pagure/usage/using_webhooks.html, pagure/hooks/default.py
  {
    name: "pagure",
    eventHeader: "x-pagure-topic",
    signatureHeaders: ["x-pagure-signature-256"],
    push: {
      events: /^git\.(?:receive|branch\.deletion)$/,
      event: "topic",
      ref: ["msg.branch"],
      before: "msg.old_commit",
      after: "msg.end_commit",
      isDeleted: (_, event) => event === "git.branch.deletion",
      fullRef: (name) => (/^refs\/(?!heads\/)/.test(name) ? name : `refs/heads/${name}`),
      repository: ["msg.project_fullname"],
      pusher: ["msg.agent"],
    },
  },
  // The newline that ends its body is signed too.
  // https://github.com/harness/gitness, app/services/webhook/trigger.go and handler_branch.go
  likeGitness("gitness"),
  likeGitness("harness"),
];

/**
 * A sender without a header that names an event. The signature may be in any known header, so that a sender who has the
 * secret learns what is missing; nothing of the body is read.
 */
export const unknownHost: Host = {
  name: "unknown",
  eventHeader: null,
  signatureHeaders: [
    ...giteaSignatures,
    "x-pagure-signature-256",
    "x-gitness-signature",
    "x-harness-signature",
    "webhook-signature",
  ],
  help: {
    sent: "authorization",
    text:
      "The request has a password or token (the header Authorization) and no HMAC-SHA256 signature; a password does not " +
      "prove who wrote the body, so it is refused. If the webhook's form has a field for a secret, set it to the value " +
      "of WEBHOOK_SECRET. If it has none, as at Azure DevOps, remove the webhook, and change the password if it is used " +
      "elsewhere. Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL; to deploy " +
      'at once, let a pipeline send a signed push (docs/git-hosts.md, "Your own sender").',
  },
  push: null,
};

/** The host whose headers these are, else `unknownHost`. Headers are unsigned: a hint, not a proof. */
export function identifyHost(headers: IncomingHttpHeaders): Host {
  const isSender = ({ eventHeader, ownHeader }: Host) =>
    headers[eventHeader ?? ""] !== undefined && (ownHeader === undefined || headers[ownHeader] !== undefined);
  return gitHosts.find(isSender) ?? unknownHost;
}

/** The signature that the headers claim, before a byte of the body is read; or why the host's deliveries have none. */
export function claimSignature(
  { signatureHeaders, help }: Host,
  headers: IncomingHttpHeaders,
): SignatureClaim {
  const claim = readSignature(headers, signatureHeaders);
  const isHelped = claim.kind === "missing" && help !== undefined && headers[help.sent] !== undefined;
  return isHelped ? { kind: "unsupported", help: help.text } : claim;
}

/** What a payload means to a deployment service. */
export type Reading =
  | { readonly kind: "ping" }
  | { readonly kind: "other-event" }
  /** The `field` (slash path from the payload's root) is not as `expected`. */
  | { readonly kind: "unusable"; readonly field: string; readonly expected: string }
  | {
      readonly kind: "push";
      readonly changes: readonly RefChange[];
      readonly repository: string | null;
      /** The login name of the person who pushed, as sent. */
      readonly pusher: string | null;
    };

/** One ref that a push moved. */
export interface RefChange {
  /** The full name, as sent. */
  readonly ref: string;
  /** null: the ref was created, or the host sends none. */
  readonly before: CommitId | null;
  /** As sent; null: the ref was deleted. */
  readonly after: string | null;
}

/** Reads a verified payload. Never throws, whatever it is. */
export function readPayload({ push, pingEvent }: Host, header: string, payload: JsonObject): Reading {
  if (push === null) {
    const expected = "there: a header has to name the event, and through it the git host";
    return { kind: "unusable", field: "X-GitHub-Event", expected };
  }
  const event = (push.event && textAt(payload, push.event)) ?? header;
  if (event === pingEvent) return { kind: "ping" };
  if (!push.events.test(event)) return { kind: "other-event" };
  const list = push.list === undefined ? [payload] : valueAt(payload, push.list);
  const place = push.list === undefined ? "" : `/${push.list.replaceAll(".", "/")}`;
  if (!Array.isArray(list))
    return { kind: "unusable", field: place, expected: "the list of refs that the push moved" };
  const changes: RefChange[] = [];
  for (const [index, one] of list.entries()) {
    const entry: JsonObject = isJsonObject(one) ? one : {};
    const at = push.list === undefined ? "" : `${place}/${index}`;
    const name = firstText(entry, push.ref);
    const after = textAt(entry, push.after);
    if (name === null) return missing(at, push.ref[0] ?? "", "the ref that was pushed");
    if (after === null && !push.isDeleted?.(entry, event))
      return missing(at, push.after, "the commit pushed");
    const before = textAt(entry, push.before);
    changes.push({
      ref: push.fullRef?.(name, entry) ?? name,
      before: isCommitId(before) ? before : null,
      after: after === null || isNullId(after) ? null : after,
    });
  }
  const names = push.repository.map((path) => textAt(payload, path));
  const repository = names.includes(null) ? null : names.join("/");
  return { kind: "push", changes, repository, pusher: firstText(payload, push.pusher) };
}

function missing(place: string, path: string, expected: string): Reading {
  return { kind: "unusable", field: `${place}/${path.replaceAll(".", "/")}`, expected };
}

function firstText(payload: JsonObject, paths: readonly string[]): string | null {
  return paths.map((path) => textAt(payload, path)).find((text) => text !== null) ?? null;
}

/** The string at `path`, or null if there is none. */
function textAt(payload: JsonObject, path: string): string | null {
  const value = valueAt(payload, path);
  return typeof value === "string" ? value : null;
}

/** The value at `path`, following own properties only, so that `__proto__` is an ordinary name. */
function valueAt(payload: JsonObject, path: string): unknown {
  let value: unknown = payload;
  for (const key of path.split(".")) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}
