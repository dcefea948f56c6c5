import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject, type JsonObject } from "#deployments/push";
import { bodySignatureIn, type SignatureClaim, standardWebhookSignature } from "./verify-signature.ts";

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

/** One ref that a push moved, as sent: full ref name, ids in hex, null if the host sends none. */
export interface RefChange {
  readonly ref: string;
  readonly before: string | null;
  /** null or all zeros: the ref was deleted */
  readonly after: string | null;
}

const otherEvent: Reading = { kind: "other-event" };

/**
 * Gitea also sends the signatures of Gogs and GitHub, Forgejo sends all four, and all carry the same HMAC-SHA256; each one
 * that is there must be right. Without a secret they are sent empty. `X-Hub-Signature` is the old SHA-1 and is not read.
 * https://docs.gitea.com/usage/webhooks, services/webhook/deliver.go
 */
const giteaSignature = bodySignatureIn(
  "x-forgejo-signature",
  "x-gitea-signature",
  "x-gogs-signature",
  "x-hub-signature-256",
);

const pushesWithoutHook =
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL";
const azureAdvice =
  "Azure DevOps has no setting that signs the body: remove its service hook, and change the password if it is used " +
  `elsewhere. ${pushesWithoutHook}; to deploy at once, let a pipeline send a signed push (docs/git-hosts.md, "Your own sender").`;

/**
 * The git hosts, in the order in which they are tried: Forgejo sends Gitea's headers too, Gitea sends those of Gogs, and all
 * three send GitHub's. Both Bitbuckets share their event header: Cloud is tried first and recognises its own.
 */
export const gitHosts: readonly Host[] = [
  // Its `create` and `delete` events carry a full ref too, but no `after`: only the shape distinguishes them from a push.
  // The test button of Forgejo, Gitea and Gogs sends a real push whose `before` is its `after`.
  // https://forgejo.org/docs/latest/user/webhooks/, services/webhook/shared/payloader.go
  {
    name: "forgejo",
    eventHeader: "x-forgejo-event",
    deliveryHeader: "x-forgejo-delivery",
    claimSignature: giteaSignature,
    read: readGithubPush,
  },
  // Its push has no `deleted` field: an all-zero `after` says that the ref was deleted.
  // https://docs.gitea.com/usage/webhooks, modules/structs/hook.go
  {
    name: "gitea",
    eventHeader: "x-gitea-event",
    deliveryHeader: "x-gitea-delivery",
    claimSignature: giteaSignature,
    read: readGithubPush,
  },
  // Its push has neither `head_commit` nor `deleted`; tags and deletions come as the events `create` and `delete`.
  // https://github.com/gogs/gogs, internal/database/webhook.go and internal/route/api/v1/types/webhook.go
  {
    name: "gogs",
    eventHeader: "x-gogs-event",
    deliveryHeader: "x-gogs-delivery",
    claimSignature: giteaSignature,
    read: readGithubPush,
  },
  // GitHub and GitHub Enterprise Server. `X-Hub-Signature` carries the old SHA-1 beside the SHA-256 and is not read.
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
  {
    name: "github",
    eventHeader: "x-github-event",
    deliveryHeader: "x-github-delivery",
    claimSignature: bodySignatureIn("x-hub-signature-256"),
    read: (event, payload) => (event === "ping" ? { kind: "ping" } : readGithubPush(event, payload)),
  },
  // Only its signing token signs (Standard Webhooks); a plain token may be sent with the signature and counts for nothing.
  // An all-zero `after` says that the ref was deleted. The test button sends a push like any other.
  // https://docs.gitlab.com/user/project/integrations/webhooks/, lib/gitlab/data_builder/push.rb
  {
    name: "gitlab",
    eventHeader: "x-gitlab-event",
    deliveryHeader: "idempotency-key",
    claimSignature: claimGitlabSignature,
    read: readGitlabPush,
  },
  // Its `X-Hub-Signature` is SHA-256; other hosts send SHA-1 under that name: the prefix decides. Data Center sends
  // `X-Event-Key` as well, but has other names for its push and its request id.
  // https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
  {
    name: "bitbucket-cloud",
    eventHeader: "x-event-key",
    recognises: ({ "x-event-key": event, "x-request-uuid": id }) =>
      event === "repo:push" || (event !== undefined && id !== undefined),
    deliveryHeader: "x-request-uuid",
    claimSignature: bodySignatureIn("x-hub-signature"),
    read: readBitbucketCloudPush,
  },
  // Data Center and Server. "Test connection" sends `diagnostics:ping`.
  // https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html
  {
    name: "bitbucket-data-center",
    eventHeader: "x-event-key",
    deliveryHeader: "x-request-id",
    claimSignature: bodySignatureIn("x-hub-signature"),
    read: readBitbucketDataCenterPush,
  },
  // Every URL receives every topic. `X-Pagure-Signature` is the old SHA-1 and is not read. The key is the project's own hook
  // token. https://docs.pagure.org/pagure/usage/using_webhooks.html, pagure/hooks/default.py
  {
    name: "pagure",
    eventHeader: "x-pagure-topic",
    deliveryHeader: null,
    claimSignature: bodySignatureIn("x-pagure-signature-256"),
    read: readPagurePush,
  },
  // The newline that ends its body is signed too.
  // https://github.com/harness/gitness, app/services/webhook/trigger.go and handler_branch.go
  {
    name: "gitness",
    eventHeader: "x-gitness-trigger",
    deliveryHeader: null,
    claimSignature: bodySignatureIn("x-gitness-signature"),
    read: readGitnessPush,
  },
  // Gitness as Harness Open Source: the same with `Harness` in the names of its headers.
  {
    name: "harness",
    eventHeader: "x-harness-trigger",
    deliveryHeader: null,
    claimSignature: bodySignatureIn("x-harness-signature"),
    read: readGitnessPush,
  },
  // Its token is either the password itself or an HMAC of only the time, so anybody who has seen one delivery can write the
  // next. https://help.gitee.com/webhook/how-to-verify-webhook-keys
  withoutSignature(
    "gitee",
    (headers) => headers["x-gitee-event"] !== undefined,
    "Gitee does not sign the body: its token covers it neither as a password nor as a signing key, so anybody who has " +
      "seen one delivery could write any push, and it is refused. Remove this webhook. " +
      `${pushesWithoutHook}.`,
  ),
  // It names its event in the body only. Despite its name, `X-OneDev-Signature` is the secret itself: it must never be
  // logged. https://code.onedev.io/onedev/server, notification/WebHookManager.java
  withoutSignature(
    "onedev",
    (headers) => headers["x-onedev-signature"] !== undefined,
    "OneDev sent its webhook secret as plain text, which does not prove who wrote the body, so it is refused. " +
      "OneDev has no setting that signs the body: remove this webhook, and change the secret if it is used elsewhere. " +
      `${pushesWithoutHook}.`,
  ),
  // It signs with a key pair of its own and shares no secret with anybody. https://man.sr.ht/api-conventions.md
  withoutSignature(
    "sourcehut",
    (headers) => headers["x-payload-signature"] !== undefined,
    "SourceHut signed this with its own key pair (Ed25519). Hotpush verifies an HMAC-SHA256 with WEBHOOK_SECRET, which " +
      `SourceHut cannot make, so this is refused: remove this webhook. ${pushesWithoutHook}.`,
  ),
  // Its service hooks send a password (HTTP Basic) or headers that the owner chose, and name the event in the body only.
  // Microsoft documents no header of its own; these are the ones that github.com/mcdafydd/go-azuredevops and Argo CD read.
  // Some deliveries have none of them: `unknownHost` answers those with only a password.
  // https://learn.microsoft.com/azure/devops/service-hooks/services/webhooks
  withoutSignature(
    "azure-devops",
    ({ "x-vss-subscriptionid": subscription, "x-vss-activityid": activity, "user-agent": agent }) =>
      subscription !== undefined || activity !== undefined || agent?.startsWith("VSServices/") === true,
    "Azure DevOps sent no signature: the password or the headers that it can send do not prove who wrote the body, " +
      `so it is refused. ${azureAdvice}`,
  ),
];

/** A host that sends no HMAC-SHA256 over the body: every delivery is refused with `help`. */
function withoutSignature(name: string, recognises: NonNullable<Host["recognises"]>, help: string): Host {
  const claim: SignatureClaim = { kind: "unsupported", help };
  const read = () => otherEvent;
  return { name, eventHeader: null, recognises, deliveryHeader: null, claimSignature: () => claim, read };
}

/** The host whose headers these are, else `unknownHost`. Headers are unsigned: a hint, not a proof. */
export function identifyHost(headers: IncomingHttpHeaders): Host {
  const isSender = ({ eventHeader, recognises }: Host) =>
    recognises?.(headers) ?? (eventHeader !== null && headers[eventHeader] !== undefined);
  return gitHosts.find(isSender) ?? unknownHost;
}

/**
 * A sender without a header that names an event. The signature may be in any known header, so that a sender who has the
 * secret learns what is missing; nothing of the body is read. A password (HTTP Basic) is not a signature.
 */
export const unknownHost: Host = {
  name: "unknown",
  eventHeader: null,
  deliveryHeader: null,
  claimSignature: claimAnySignature,
  read: () =>
    unusable("X-GitHub-Event", "there: a header has to name the event, and through it the git host"),
};

const anySignature = [
  bodySignatureIn(
    ...["x-hub-signature-256", "x-forgejo-signature", "x-gitea-signature", "x-gogs-signature"],
    ...["x-pagure-signature-256", "x-gitness-signature", "x-harness-signature"],
  ),
  // Only Bitbucket has SHA-256 in this header, and sends no other; beside one of the headers above it is a SHA-1.
  bodySignatureIn("x-hub-signature"),
  standardWebhookSignature,
];

function claimAnySignature(headers: IncomingHttpHeaders): SignatureClaim {
  for (const claimSignature of anySignature) {
    const claim = claimSignature(headers);
    if (claim.kind !== "missing") return claim;
  }
  if (headers.authorization === undefined) return { kind: "missing" };
  const help =
    "The request has a password or token (the header Authorization) and no HMAC-SHA256 signature; a password does not " +
    "prove who wrote the body, so it is refused. If the webhook's form has a field for a secret, set it to the value " +
    `of WEBHOOK_SECRET. ${azureAdvice}`;
  return { kind: "unsupported", help };
}

function claimGitlabSignature(headers: IncomingHttpHeaders): SignatureClaim {
  const claim = standardWebhookSignature(headers);
  if (claim.kind !== "missing" || headers["x-gitlab-token"] === undefined) return claim;
  const help =
    "GitLab sent its secret token as plain text, which does not prove who wrote the body, so it is refused. " +
    "In the webhook's settings clear the secret token and set a signing token (GitLab 19.0 or newer), and give " +
    "Hotpush the same value, whsec_ included, in WEBHOOK_SECRET.";
  return { kind: "unsupported", help };
}

/**
 * Reads a push in GitHub's shape, which Gitea, Forgejo and Gogs send too. The event header is not signed, so the shape
 * decides as well: `ref`, `before` and `after` are there and `action`, which other events have, is not.
 */
function readGithubPush(event: string, payload: JsonObject): Reading {
  if (event !== "push") return otherEvent;
  if (Object.hasOwn(payload, "action")) return unusable("/action", "absent, as it is in a push");
  const ref = textAt(payload, "ref");
  if (ref === null) return unusable("/ref", "a full ref name such as refs/heads/main");
  const before = textAt(payload, "before");
  if (before === null) return unusable("/before", "the commit before the push");
  const after = textAt(payload, "after");
  if (after === null) return unusable("/after", "the commit pushed");
  const isDeleted = valueAt(payload, "deleted") === true;
  const repository = textAt(payload, "repository", "full_name");
  // GitHub has the pusher's login name in `name`, Gitea and its relatives in `login`.
  const pusher = textAt(payload, "pusher", "login") ?? textAt(payload, "pusher", "name");
  return { kind: "push", changes: [{ ref, before, after: isDeleted ? null : after }], repository, pusher };
}

/** The `object_kind` in the body of each event of GitLab that can be a push; a system hook is sent for many others too. */
const gitlabKinds: ReadonlyMap<string, readonly string[]> = new Map([
  ["Push Hook", ["push"]],
  ["Tag Push Hook", ["tag_push"]],
  ["System Hook", ["push", "tag_push"]],
]);

/** GitLab's push has the three fields of GitHub's, and its own names for repository and pusher. */
function readGitlabPush(event: string, payload: JsonObject): Reading {
  const kinds = gitlabKinds.get(event);
  if (kinds === undefined) return otherEvent;
  const kind = textAt(payload, "object_kind");
  if (kind === null || !kinds.includes(kind)) {
    if (event === "System Hook") return otherEvent;
    return unusable("/object_kind", `${kinds[0]}, as in a ${event}`);
  }
  const reading = readGithubPush("push", payload);
  if (reading.kind !== "push") return reading;
  const repository = textAt(payload, "project", "path_with_namespace");
  return { ...reading, repository, pusher: textAt(payload, "user_username") };
}

/** One push of Bitbucket Cloud lists every ref it moved, by short name; a deleted one has no `new`. */
function readBitbucketCloudPush(event: string, payload: JsonObject): Reading {
  if (event !== "repo:push") return otherEvent;
  const shape = "a branch or tag with its old and new commit";
  const changes = readChanges(valueAt(payload, "push", "changes"), "/push/changes", shape, (entry) => {
    const isDeleted = valueAt(entry, "new") === null;
    const side = isDeleted ? "old" : "new";
    const [name, type] = [textAt(entry, side, "name"), textAt(entry, side, "type")];
    const after = textAt(entry, "new", "target", "hash");
    if (name === null || (type !== "branch" && type !== "tag")) return null;
    if (after === null && !isDeleted) return null;
    const ref = type === "branch" ? `refs/heads/${name}` : `refs/tags/${name}`;
    return { ref, before: textAt(entry, "old", "target", "hash"), after };
  });
  if ("kind" in changes) return changes;
  const repository = textAt(payload, "repository", "full_name");
  return { kind: "push", changes, repository, pusher: textAt(payload, "actor", "nickname") };
}

/** The body must name its event as well: a mirror's `mirror:repo_synchronized` has the same list of refs. */
function readBitbucketDataCenterPush(event: string, payload: JsonObject): Reading {
  if (event === "diagnostics:ping") return { kind: "ping" };
  if (event !== "repo:refs_changed") return otherEvent;
  if (textAt(payload, "eventKey") !== event) return unusable("/eventKey", event);
  const shape = "a ref.id with its fromHash, toHash and type";
  const changes = readChanges(valueAt(payload, "changes"), "/changes", shape, (entry) => {
    const ref = textAt(entry, "ref", "id");
    const [before, after] = [textAt(entry, "fromHash"), textAt(entry, "toHash")];
    const type = textAt(entry, "type");
    if (ref === null || before === null || after === null || type === null) return null;
    return { ref, before, after: type === "DELETE" ? null : after };
  });
  if ("kind" in changes) return changes;
  const project = textAt(payload, "repository", "project", "key");
  const slug = textAt(payload, "repository", "slug");
  const repository = project === null || slug === null ? null : `${project}/${slug}`;
  return { kind: "push", changes, repository, pusher: textAt(payload, "actor", "name") };
}

/** Reads the refs that a push of either Bitbucket moved; `field` is the path of the list, `shape` what each entry must be. */
function readChanges(
  list: unknown,
  field: string,
  shape: string,
  read: (entry: JsonObject) => RefChange | null,
): readonly RefChange[] | Reading {
  if (!Array.isArray(list)) return unusable(field, "the list of refs that the push moved");
  const changes = Array.from(list, (entry: unknown) => (isJsonObject(entry) ? read(entry) : null));
  const index = changes.indexOf(null);
  if (index >= 0) return unusable(`${field}/${index}`, shape);
  return changes.filter((change) => change !== null);
}

/** The body names the topic again. Pagure removes `refs/heads/` from a ref and leaves any other as it is. */
function readPagurePush(event: string, payload: JsonObject): Reading {
  const isDeletion = event === "git.branch.deletion";
  if (event !== "git.receive" && !isDeletion) return otherEvent;
  if (textAt(payload, "topic") !== event) return unusable("/topic", event);
  const branch = textAt(payload, "msg", "branch");
  if (branch === null) return unusable("/msg/branch", `the branch ${isDeletion ? "deleted" : "pushed"}`);
  const after = textAt(payload, "msg", "end_commit");
  if (after === null && !isDeletion) return unusable("/msg/end_commit", "the commit pushed");
  const ref = /^refs\/(?!heads\/)/.test(branch) ? branch : `refs/heads/${branch}`;
  // The commit before is `^<id>`, git's "not reachable from", if the branch is new.
  const before = textAt(payload, "msg", isDeletion ? "rev" : "old_commit")?.replace(/^\^/, "") ?? null;
  const repository = textAt(payload, "msg", "project_fullname");
  const changes = [{ ref, before, after: isDeletion ? null : after }];
  return { kind: "push", changes, repository, pusher: textAt(payload, "msg", "agent") };
}

/** The body must name its trigger as well: that of a pull request carries a ref and its commits in the same fields. */
function readGitnessPush(event: string, payload: JsonObject): Reading {
  if (!/^(?:branch|tag)_(?:created|updated|deleted)$/.test(event)) return otherEvent;
  if (textAt(payload, "trigger") !== event) return unusable("/trigger", event);
  const ref = textAt(payload, "ref", "name");
  if (ref === null) return unusable("/ref/name", "a full ref name such as refs/heads/main");
  const before = textAt(payload, "old_sha");
  if (before === null) return unusable("/old_sha", "the commit before the push");
  const sha = textAt(payload, "sha");
  if (sha === null) return unusable("/sha", "the commit pushed");
  const after = event.endsWith("_deleted") ? null : sha;
  const repository = textAt(payload, "repo", "path");
  const pusher = textAt(payload, "principal", "uid");
  return { kind: "push", changes: [{ ref, before, after }], repository, pusher };
}

function unusable(field: string, expected: string): Reading {
  return { kind: "unusable", field, expected };
}

/** The value at `path`, following own properties only, so that `__proto__` is an ordinary name. */
function valueAt(payload: JsonObject, ...path: readonly string[]): unknown {
  let value: unknown = payload;
  for (const key of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** The string at `path`, or null if there is none. */
function textAt(payload: JsonObject, ...path: readonly string[]): string | null {
  const value = valueAt(payload, ...path);
  return typeof value === "string" ? value : null;
}
