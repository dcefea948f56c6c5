import type { IncomingHttpHeaders } from "node:http";
import { azureDevopsAdvice } from "./azure-devops.ts";
import { type Host, type SignatureClaim, unusable } from "./host.ts";
import { bodySignatureIn, claimStandardWebhookSignature } from "./signature-headers.ts";

/**
 * A sender without a header that names an event. The signature may be in any known header, so that a sender who has the
 * secret learns what is missing; nothing of the body is read. A password (HTTP Basic) is not a signature.
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
  "The request has a password or token (the header Authorization) and no HMAC-SHA256 signature; a password does not " +
  "prove who wrote the body, so it is refused. If the webhook's form has a field for a secret, set it to the value " +
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

/** Only Bitbucket has SHA-256 in this header, and sends no other; beside one of the headers above it is a SHA-1. */
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
