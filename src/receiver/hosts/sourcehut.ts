import { type Host, unsupportedHost } from "./host.ts";

const help =
  "SourceHut signed this with its own key pair (Ed25519). Hotpush verifies an HMAC-SHA256 with WEBHOOK_SECRET, which " +
  "SourceHut cannot make, so this is refused: remove this webhook. " +
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL.";

/**
 * SourceHut, which signs with a key pair of its own (Ed25519) and shares no secret with anybody.
 * https://man.sr.ht/api-conventions.md
 */
export const sourcehut: Host = unsupportedHost(
  "sourcehut",
  help,
  (headers) => headers["x-payload-signature"] !== undefined,
);
