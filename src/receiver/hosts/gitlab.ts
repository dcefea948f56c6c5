import type { IncomingHttpHeaders } from "node:http";
import { readGithubPush } from "./github.ts";
import {
  type Host,
  type JsonObject,
  otherEvent,
  type Reading,
  type SignatureClaim,
  textAt,
  unusable,
} from "./host.ts";
import { claimStandardWebhookSignature } from "./signature-headers.ts";

/** The `object_kind` in the body of each event that can be a push; a system hook is sent for many other events too. */
const objectKinds: ReadonlyMap<string, readonly string[]> = new Map([
  ["Push Hook", ["push"]],
  ["Tag Push Hook", ["tag_push"]],
  ["System Hook", ["push", "tag_push"]],
]);

/**
 * GitLab. Only its signing token signs (Standard Webhooks); a plain token may be sent with the signature and counts for
 * nothing. An all-zero `after` says that the ref was deleted. The test button sends a push like any other.
 * https://docs.gitlab.com/user/project/integrations/webhooks/, lib/gitlab/data_builder/push.rb
 */
export const gitlab: Host = {
  name: "gitlab",
  eventHeader: "x-gitlab-event",
  deliveryHeader: "idempotency-key",
  claimSignature,
  read(event, payload) {
    const kinds = objectKinds.get(event);
    if (kinds === undefined) return otherEvent;
    const kind = textAt(payload, "object_kind");
    if (kind !== null && kinds.includes(kind)) return readPush(payload);
    if (event === "System Hook") return otherEvent;
    return unusable("/object_kind", `${kinds[0]}, as in a ${event}`);
  },
};

function claimSignature(headers: IncomingHttpHeaders): SignatureClaim {
  const claim = claimStandardWebhookSignature(headers);
  if (claim.kind !== "missing" || headers["x-gitlab-token"] === undefined) return claim;
  const help =
    "GitLab sent its secret token as plain text, which does not prove who wrote the body, so it is refused. " +
    "In the webhook's settings clear the secret token and set a signing token (GitLab 19.0 or newer), and give " +
    "Hotpush the same value, whsec_ included, in WEBHOOK_SECRET.";
  return { kind: "unsupported", help };
}

/** GitLab's push has the three fields of GitHub's, and its own names for repository and pusher. */
function readPush(payload: JsonObject): Reading {
  const reading = readGithubPush("push", payload);
  if (reading.kind !== "push") return reading;
  const repository = textAt(payload, "project", "path_with_namespace");
  return { ...reading, repository, pusher: textAt(payload, "user_username") };
}
