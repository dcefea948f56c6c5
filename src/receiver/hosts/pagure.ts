import { bodySignatureIn } from "./body-signature.ts";
import type { Host, JsonObject, Reading, RefChange } from "./host.ts";
import { textAt, unusable } from "./payload.ts";

/**
 * Pagure. Every URL is sent every topic, and the body names it again. Branches go by their short name, tags by their
 * full one. `X-Pagure-Signature` is the old SHA-1 and is not read. The key is the project's own hook token.
 * https://docs.pagure.org/pagure/usage/using_webhooks.html, pagure/hooks/default.py
 */
export const pagure: Host = {
  name: "pagure",
  eventHeader: "x-pagure-topic",
  deliveryHeader: null,
  claimSignature: bodySignatureIn({ header: "x-pagure-signature-256", prefix: "" }),
  read(event, payload) {
    if (event !== "git.receive" && event !== "git.branch.deletion") return { kind: "other-event", event };
    if (textAt(payload, "topic") !== event) return unusable("/topic", event);
    return event === "git.receive" ? readPush(payload) : readDeletion(payload);
  },
};

function readPush(payload: JsonObject): Reading {
  const branch = textAt(payload, "msg", "branch");
  if (branch === null) return unusable("/msg/branch", "the branch pushed");
  const after = textAt(payload, "msg", "end_commit");
  if (after === null) return unusable("/msg/end_commit", "the commit pushed");
  const before = withoutCaret(textAt(payload, "msg", "old_commit"));
  return pushOf({ ref: fullRef(branch), before, after }, payload);
}

function readDeletion(payload: JsonObject): Reading {
  const branch = textAt(payload, "msg", "branch");
  if (branch === null) return unusable("/msg/branch", "the branch deleted");
  const before = withoutCaret(textAt(payload, "msg", "rev"));
  return pushOf({ ref: fullRef(branch), before, after: null }, payload);
}

/** Pagure takes `refs/heads/` off a ref and leaves any other as it is. */
function fullRef(branch: string): string {
  return /^refs\/(?!heads\/)/.test(branch) ? branch : `refs/heads/${branch}`;
}

/** The commit before is written `^<id>`, as git's "not reachable from", where the branch is new. */
function withoutCaret(commit: string | null): string | null {
  return commit?.replace(/^\^/, "") ?? null;
}

function pushOf(change: RefChange, payload: JsonObject): Reading {
  const repository = textAt(payload, "msg", "project_fullname");
  return { kind: "push", changes: [change], repository, pusher: textAt(payload, "msg", "agent") };
}
