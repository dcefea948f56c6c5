import type { JsonObject, Reading } from "./host.ts";
import { textAt, unusable, valueAt } from "./payload.ts";

/**
 * Reads a push in the shape GitHub gave it, which Gitea, Forgejo and Gogs send too. The event header is not signed,
 * so the shape decides as well: `ref`, `before` and `after` are there and `action`, which other events have, is not.
 */
export function readGithubPush(payload: JsonObject): Reading {
  if (Object.hasOwn(payload, "action")) return unusable("/action", "absent, as it is in a push");
  const ref = textAt(payload, "ref");
  if (ref === null) return unusable("/ref", "a full ref name such as refs/heads/main");
  const before = textAt(payload, "before");
  if (before === null) return unusable("/before", "the commit before the push");
  const after = textAt(payload, "after");
  if (after === null) return unusable("/after", "the commit pushed");
  const isDeleted = valueAt(payload, "deleted") === true;
  const repository = textAt(payload, "repository", "full_name");
  // GitHub names who pushed in `name`, Gitea and those after it in `login`.
  const pusher = textAt(payload, "pusher", "login") ?? textAt(payload, "pusher", "name");
  return { kind: "push", changes: [{ ref, before, after: isDeleted ? null : after }], repository, pusher };
}
