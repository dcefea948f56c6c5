import type { IncomingHttpHeaders } from "node:http";
import { bodySignatureIn } from "./body-signature.ts";
import type { Host, SignatureClaim } from "./host.ts";
import { unusable } from "./payload.ts";
import { claimStandardWebhookSignature } from "./standard-webhook-signature.ts";

/**
 * Whoever sends no header that names an event. The signature is claimed from any header known, so that one who has
 * the secret is told what is missing; nothing of the body is read.
 */
export const unknownHost: Host = {
  name: "unknown",
  eventHeader: null,
  deliveryHeader: null,
  claimSignature,
  read: () => unusable("X-GitHub-Event", expected),
};

const expected = "there: a header has to name the event, and through it the git host";

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
  return claimStandardWebhookSignature(headers);
}
