import { type Host, type JsonObject, otherEvent, type Reading, textAt, unusable } from "./host.ts";
import { bodySignatureIn } from "./signature-headers.ts";

/**
 * Pagure. Every URL receives every topic, and the body names it again. Branches have their short name, tags their full
 * one. `X-Pagure-Signature` is the old SHA-1 and is not read. The key is the project's own hook token.
 * https://docs.pagure.org/pagure/usage/using_webhooks.html, pagure/hooks/default.py
 */
export const pagure: Host = {
  name: "pagure",
  eventHeader: "x-pagure-topic",
  deliveryHeader: null,
  claimSignature: bodySignatureIn("x-pagure-signature-256"),
  read(event, payload) {
    if (event !== "git.receive" && event !== "git.branch.deletion") return otherEvent;
    if (textAt(payload, "topic") !== event) return unusable("/topic", event);
    return readTopic(payload, event === "git.branch.deletion");
  },
};

function readTopic(payload: JsonObject, isDeletion: boolean): Reading {
  const branch = textAt(payload, "msg", "branch");
  if (branch === null) return unusable("/msg/branch", `the branch ${isDeletion ? "deleted" : "pushed"}`);
  const after = textAt(payload, "msg", "end_commit");
  if (after === null && !isDeletion) return unusable("/msg/end_commit", "the commit pushed");
  // The commit before is `^<id>`, git's "not reachable from", if the branch is new.
  const before = textAt(payload, "msg", isDeletion ? "rev" : "old_commit")?.replace(/^\^/, "") ?? null;
  const change = { ref: fullRef(branch), before, after: isDeletion ? null : after };
  const repository = textAt(payload, "msg", "project_fullname");
  return { kind: "push", changes: [change], repository, pusher: textAt(payload, "msg", "agent") };
}

/** Pagure removes `refs/heads/` from a ref and leaves any other as it is. */
function fullRef(branch: string): string {
  return /^refs\/(?!heads\/)/.test(branch) ? branch : `refs/heads/${branch}`;
}
