import type { IncomingHttpHeaders } from "node:http";
import { azureDevopsAdvice } from "./azure-devops.ts";
import { bodySignatureIn } from "./body-signature.ts";
import type { Host, SignatureClaim } from "./host.ts";
import { unusable } from "./payload.ts";
import { claimStandardWebhookSignature } from "./standard-webhook-signature.ts";

/**
 * Whoever sends no header that names an event. The signature is claimed from any header known, so that one who has
 * the secret is told what is missing; nothing of the body is read. A password (HTTP Basic) is no signature.
 */
export const unknownHost: Host = {
  name: "unknown",
  eventHeader: null,
  deliveryHeader: null,
  claimSignature,
  read: () => unusable("X-GitHub-Event", expected),
};

const expected = "there: a header has to name the event, and through it the git host";

const passwordHelp =
  "The request has a password or token (the header Authorization) and no HMAC-SHA256 signature; a password says nothing " +
  "about who wrote the body, so it is refused. Where the webhook's form has a field for a secret, set it to the value " +
  `of WEBHOOK_SECRET. ${azureDevopsAdvice}`;

const claimBodySignature = bodySignatureIn(
  { header: "x-hub-signature-256", prefix: "sha256=" },
  { header: "x-forgejo-signature", prefix: "" },
  { header: "x-gitea-signature", prefix: "" },
  { header: "x-gogs-signature", prefix: "" },
  { header: "x-pagure-signature-256", prefix: "" },
  { header: "x-gitness-signature", prefix: "" },
  { header: "x-harness-signature", prefix: "" },
);

/** Only Bitbucket has SHA-256 in this header, and it sends no other: beside one of those above it is a SHA-1. */
const claimBitbucketSignature = bodySignatureIn({ header: "x-hub-signature", prefix: "sha256=" });

function claimSignature(headers: IncomingHttpHeaders): SignatureClaim {
  for (const claim of [claimBodySignature, claimBitbucketSignature]) {
    const claimed = claim(headers);
    if (claimed.kind !== "missing") return claimed;
  }
  const claimed = claimStandardWebhookSignature(headers);
  if (claimed.kind !== "missing" || headers.authorization === undefined) return claimed;
  return { kind: "unsupported", help: passwordHelp };
}
