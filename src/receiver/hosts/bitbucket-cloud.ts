import type { IncomingHttpHeaders } from "node:http";
import {
  type Host,
  isJsonObject,
  type JsonObject,
  otherEvent,
  type Reading,
  type RefChange,
  textAt,
  unusable,
  valueAt,
} from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

const pushEvent = "repo:push";
const shape = "a branch or tag with its old and new commit";

/**
 * Bitbucket Cloud. Its `X-Hub-Signature` is SHA-256; other hosts send SHA-1 under that name: the prefix decides.
 * One push lists every ref it moved, by short name; a deleted one has no `new`.
 * https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
 */
export const bitbucketCloud: Host = {
  name: "bitbucket-cloud",
  eventHeader: "x-event-key",
  recognises: isSentByCloud,
  deliveryHeader: "x-request-uuid",
  claimSignature: bodySignatureIn("x-hub-signature"),
  read(event, payload) {
    if (event !== pushEvent) return otherEvent;
    const changes = readChanges(valueAt(payload, "push", "changes"), "/push/changes", shape, readChange);
    if ("kind" in changes) return changes;
    const repository = textAt(payload, "repository", "full_name");
    return { kind: "push", changes, repository, pusher: textAt(payload, "actor", "nickname") };
  },
};

/** Reads the refs that a push of either Bitbucket moved; `field` is the path of the list, `shape` what each entry must be. */
export function readChanges(
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

/** Data Center sends `X-Event-Key` as well, but has other names for its push and its request id. */
function isSentByCloud(headers: IncomingHttpHeaders): boolean {
  const event = headers["x-event-key"];
  return event === pushEvent || (event !== undefined && headers["x-request-uuid"] !== undefined);
}

function readChange(entry: JsonObject): RefChange | null {
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
