import type { Host } from "./host.ts";

/**
 * Gitee, which has no signature over the body: its token is either the password itself or an HMAC of nothing but the
 * time, so whoever has seen one delivery can write the next.
 * https://help.gitee.com/webhook/how-to-verify-webhook-keys
 */
export const gitee: Host = {
  name: "gitee",
  eventHeader: "x-gitee-event",
  deliveryHeader: null,
  claimSignature(headers) {
    return headers["x-gitee-token"] === undefined ? { kind: "missing" } : { kind: "unsupported", help };
  },
  read: (event) => ({ kind: "other-event", event }),
};

const help =
  "Gitee sent a token that does not cover the body, neither as a password nor as a signing key, so anybody who has " +
  "seen it could write any push, and it is refused. Gitee has no setting that signs the body: remove this webhook. " +
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL.";
