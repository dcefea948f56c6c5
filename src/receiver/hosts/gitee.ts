import { type Host, unsupportedHost } from "./host.ts";

const help =
  "Gitee sent a token that does not cover the body, neither as a password nor as a signing key, so anybody who has " +
  "seen it could write any push, and it is refused. Gitee has no setting that signs the body: remove this webhook. " +
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL.";

const refusing = unsupportedHost("gitee", help, (headers) => headers["x-gitee-event"] !== undefined);

/**
 * Gitee, which has no signature over the body: its token is either the password itself or an HMAC of only the time, so
 * anybody who has seen one delivery can write the next.
 * https://help.gitee.com/webhook/how-to-verify-webhook-keys
 */
export const gitee: Host = {
  ...refusing,
  claimSignature: (headers) =>
    headers["x-gitee-token"] === undefined ? { kind: "missing" } : refusing.claimSignature(),
};
