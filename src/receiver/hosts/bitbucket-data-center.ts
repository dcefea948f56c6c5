import { bodySignatureIn } from "./body-signature.ts";
import type { Host, JsonObject, Reading, RefChange } from "./host.ts";
import { isJsonObject, textAt, unusable, valueAt } from "./payload.ts";

const pushEvent = "repo:refs_changed";

/**
 * Bitbucket Data Center and Server. One push lists every ref it moved. The body names its event as well, and has to:
 * a mirror's `mirror:repo_synchronized` has the same list. "Test connection" sends `diagnostics:ping`.
 * https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html
 */
export const bitbucketDataCenter: Host = {
  name: "bitbucket-data-center",
  eventHeader: "x-event-key",
  deliveryHeader: "x-request-id",
  claimSignature: bodySignatureIn({ header: "x-hub-signature", prefix: "sha256=" }),
  read(event, payload) {
    if (event === "diagnostics:ping") return { kind: "ping" };
    return event === pushEvent ? readPush(payload) : { kind: "other-event", event };
  },
};

function readPush(payload: JsonObject): Reading {
  if (textAt(payload, "eventKey") !== pushEvent) return unusable("/eventKey", pushEvent);
  const entries = valueAt(payload, "changes");
  if (!Array.isArray(entries)) return unusable("/changes", "the list of refs that the push moved");
  const changes: RefChange[] = [];
  for (const [index, entry] of entries.entries()) {
    const change = readChange(entry);
    if (change === null) return unusable(`/changes/${index}`, "a ref.id with its fromHash, toHash and type");
    changes.push(change);
  }
  const pusher = textAt(payload, "actor", "name");
  return { kind: "push", changes, repository: readRepository(payload), pusher };
}

function readChange(entry: unknown): RefChange | null {
  if (!isJsonObject(entry)) return null;
  const ref = textAt(entry, "ref", "id");
  const before = textAt(entry, "fromHash");
  const after = textAt(entry, "toHash");
  const type = textAt(entry, "type");
  if (ref === null || before === null || after === null || type === null) return null;
  return { ref, before, after: type === "DELETE" ? null : after };
}

function readRepository(payload: JsonObject): string | null {
  const project = textAt(payload, "repository", "project", "key");
  const slug = textAt(payload, "repository", "slug");
  return project === null || slug === null ? null : `${project}/${slug}`;
}
