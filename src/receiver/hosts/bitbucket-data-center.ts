import { readChanges } from "./bitbucket-cloud.ts";
import { type Host, type JsonObject, otherEvent, type RefChange, textAt, unusable, valueAt } from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

const pushEvent = "repo:refs_changed";
const shape = "a ref.id with its fromHash, toHash and type";

/**
 * Bitbucket Data Center and Server. One push lists every ref it moved. The body must name its event as well: a mirror's
 * `mirror:repo_synchronized` has the same list. "Test connection" sends `diagnostics:ping`.
 * https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html
 */
export const bitbucketDataCenter: Host = {
  name: "bitbucket-data-center",
  eventHeader: "x-event-key",
  deliveryHeader: "x-request-id",
  claimSignature: bodySignatureIn("x-hub-signature"),
  read(event, payload) {
    if (event === "diagnostics:ping") return { kind: "ping" };
    if (event !== pushEvent) return otherEvent;
    if (textAt(payload, "eventKey") !== pushEvent) return unusable("/eventKey", pushEvent);
    const changes = readChanges(valueAt(payload, "changes"), "/changes", shape, readChange);
    if ("kind" in changes) return changes;
    return {
      kind: "push",
      changes,
      repository: readRepository(payload),
      pusher: textAt(payload, "actor", "name"),
    };
  },
};

function readChange(entry: JsonObject): RefChange | null {
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
