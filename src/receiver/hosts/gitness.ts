import { bodySignatureIn } from "./body-signature.ts";
import type { Host, JsonObject, Reading } from "./host.ts";
import { textAt, unusable } from "./payload.ts";

/**
 * Gitness. The newline that ends its body is signed too. The body names its trigger as well, and has to: that of a pull
 * request carries a ref and its commits in the same fields.
 * https://github.com/harness/gitness, app/services/webhook/trigger.go and handler_branch.go
 */
export const gitness = hostNamed("gitness");

/** Gitness as Harness Open Source: the same with `Harness` in the names of its headers. */
export const harness = hostNamed("harness");

function hostNamed(name: "gitness" | "harness"): Host {
  return {
    name,
    eventHeader: `x-${name}-trigger`,
    deliveryHeader: null,
    claimSignature: bodySignatureIn({ header: `x-${name}-signature`, prefix: "" }),
    read: readTrigger,
  };
}

function readTrigger(event: string, payload: JsonObject): Reading {
  if (!/^(?:branch|tag)_(?:created|updated|deleted)$/.test(event)) return { kind: "other-event", event };
  if (textAt(payload, "trigger") !== event) return unusable("/trigger", event);
  const ref = textAt(payload, "ref", "name");
  if (ref === null) return unusable("/ref/name", "a full ref name such as refs/heads/main");
  const before = textAt(payload, "old_sha");
  if (before === null) return unusable("/old_sha", "the commit before the push");
  const sha = textAt(payload, "sha");
  if (sha === null) return unusable("/sha", "the commit pushed");
  const after = event.endsWith("_deleted") ? null : sha;
  const repository = textAt(payload, "repo", "path");
  return {
    kind: "push",
    changes: [{ ref, before, after }],
    repository,
    pusher: textAt(payload, "principal", "uid"),
  };
}
