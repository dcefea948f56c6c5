import { type Host, type JsonObject, otherEvent, type Reading, textAt, unusable, valueAt } from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

/**
 * GitHub and GitHub Enterprise Server. `X-Hub-Signature` carries the old SHA-1 beside the SHA-256 and is not read.
 * https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
 */
export const github: Host = {
  name: "github",
  eventHeader: "x-github-event",
  deliveryHeader: "x-github-delivery",
  claimSignature: bodySignatureIn("x-hub-signature-256"),
  read: (event, payload) => (event === "ping" ? { kind: "ping" } : readGithubPush(event, payload)),
};

/**
 * Reads a push in GitHub's shape, which Gitea, Forgejo and Gogs send too. The event header is not signed, so the shape
 * decides as well: `ref`, `before` and `after` are there and `action`, which other events have, is not.
 */
export function readGithubPush(event: string, payload: JsonObject): Reading {
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
