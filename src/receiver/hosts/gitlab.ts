import type { IncomingHttpHeaders } from "node:http";
import { readGithubPush } from "./github-push.ts";
import type { Host, JsonObject, Reading, SignatureClaim } from "./host.ts";
import { textAt, unusable } from "./payload.ts";
import { claimStandardWebhookSignature } from "./standard-webhook-signature.ts";

/** What `object_kind` says in the body of each event that can be a push; a system hook is sent for much else too. */
const objectKinds: ReadonlyMap<string, readonly string[]> = new Map([
  ["Push Hook", ["push"]],
  ["Tag Push Hook", ["tag_push"]],
  ["System Hook", ["push", "tag_push"]],
]);

/**
 * GitLab. Signed with its signing token only (Standard Webhooks); where that is set its plain token may come beside
 * it and counts for nothing. A deleted ref is told by an all-zero `after`. The test button sends a push like any other.
 * https://docs.gitlab.com/user/project/integrations/webhooks/, lib/gitlab/data_builder/push.rb
 */
export const gitlab: Host = {
  name: "gitlab",
  eventHeader: "x-gitlab-event",
  deliveryHeader: "idempotency-key",
  claimSignature,
  read(event, payload) {
    const kinds = objectKinds.get(event);
    if (kinds === undefined) return { kind: "other-event", event };
    const kind = textAt(payload, "object_kind");
    if (kind !== null && kinds.includes(kind)) return readPush(payload);
    if (event === "System Hook")
      return { kind: "other-event", event: textAt(payload, "event_name") ?? event };
    return unusable("/object_kind", `${kinds[0]}, as in a ${event}`);
  },
};

function claimSignature(headers: IncomingHttpHeaders): SignatureClaim {
  const claim = claimStandardWebhookSignature(headers);
  if (claim.kind !== "missing" || headers["x-gitlab-token"] === undefined) return claim;
  const help =
    "GitLab sent its secret token as plain text, which says nothing about who wrote the body, so it is refused. " +
    "In the webhook's settings clear the secret token and set a signing token (GitLab 19.0 or newer), and give " +
    "Hotpush the same value, whsec_ included, in WEBHOOK_SECRET.";
  return { kind: "unsupported", help };
}

/** GitLab's push has the three fields of GitHub's, and its own names for repository and pusher. */
function readPush(payload: JsonObject): Reading {
  const reading = readGithubPush(payload);
  if (reading.kind !== "push") return reading;
  const repository = textAt(payload, "project", "path_with_namespace");
  return { ...reading, repository, pusher: textAt(payload, "user_username") };
}
