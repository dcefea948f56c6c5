import { type Host, type JsonObject, otherEvent, type Reading, textAt, unusable } from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

/**
 * Gitness. The newline that ends its body is signed too. The body must name its trigger as well: that of a pull request
 * carries a ref and its commits in the same fields.
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
    claimSignature: bodySignatureIn(`x-${name}-signature`),
    read: readTrigger,
  };
}

function readTrigger(event: string, payload: JsonObject): Reading {
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
