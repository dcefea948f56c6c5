import type { IncomingHttpHeaders } from "node:http";
import { bodySignatureIn } from "./body-signature.ts";
import type { Host, JsonObject, Reading, RefChange } from "./host.ts";
import { isJsonObject, textAt, unusable, valueAt } from "./payload.ts";

const pushEvent = "repo:push";

/**
 * Bitbucket Cloud. Its `X-Hub-Signature` is SHA-256, where other hosts send SHA-1 under that name: the prefix decides.
 * One push lists every ref it moved, by short name; a deleted one has no `new`.
 * https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
 */
export const bitbucketCloud: Host = {
  name: "bitbucket-cloud",
  eventHeader: "x-event-key",
  recognises: isSentByCloud,
  deliveryHeader: "x-request-uuid",
  claimSignature: bodySignatureIn({ header: "x-hub-signature", prefix: "sha256=" }),
  read(event, payload) {
    return event === pushEvent ? readPush(payload) : { kind: "other-event", event };
  },
};

/** Data Center sends `X-Event-Key` as well, but names its push and its request id differently. */
function isSentByCloud(headers: IncomingHttpHeaders): boolean {
  const event = headers["x-event-key"];
  return event === pushEvent || (event !== undefined && headers["x-request-uuid"] !== undefined);
}

function readPush(payload: JsonObject): Reading {
  const entries = valueAt(payload, "push", "changes");
  if (!Array.isArray(entries)) return unusable("/push/changes", "the list of refs that the push moved");
  const changes: RefChange[] = [];
  for (const [index, entry] of entries.entries()) {
    const change = readChange(entry);
    if (change === null)
      return unusable(`/push/changes/${index}`, "a branch or tag with its old and new commit");
    changes.push(change);
  }
  const repository = textAt(payload, "repository", "full_name");
  return { kind: "push", changes, repository, pusher: textAt(payload, "actor", "nickname") };
}

function readChange(entry: unknown): RefChange | null {
  if (!isJsonObject(entry)) return null;
  const isDeleted = valueAt(entry, "new") === null;
  const ref = readRef(entry, isDeleted ? "old" : "new");
  const after = textAt(entry, "new", "target", "hash");
  if (ref === null || (after === null && !isDeleted)) return null;
  return { ref, before: textAt(entry, "old", "target", "hash"), after };
}

function readRef(entry: JsonObject, side: "old" | "new"): string | null {
  const name = textAt(entry, side, "name");
  const type = textAt(entry, side, "type");
  if (name === null || (type !== "branch" && type !== "tag")) return null;
  return type === "branch" ? `refs/heads/${name}` : `refs/tags/${name}`;
}
