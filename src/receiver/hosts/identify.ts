import type { IncomingHttpHeaders } from "node:http";
import { azureDevops, azureDevopsAdvice } from "./azure-devops.ts";
import { bitbucketCloud } from "./bitbucket-cloud.ts";
import { bitbucketDataCenter } from "./bitbucket-data-center.ts";
import { forgejo } from "./forgejo.ts";
import { gitea } from "./gitea.ts";
import { gitee } from "./gitee.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { gitness, harness } from "./gitness.ts";
import { gogs } from "./gogs.ts";
import { type Host, type SignatureClaim, unusable } from "./host.ts";
import { onedev } from "./onedev.ts";
import { pagure } from "./pagure.ts";
import { bodySignatureIn, claimStandardWebhookSignature } from "./signature-headers.ts";
import { sourcehut } from "./sourcehut.ts";

/** The host whose headers these are, else `unknownHost`. Headers are unsigned: a hint, not a proof. */
export function identifyHost(headers: IncomingHttpHeaders): Host {
  for (const host of hosts) {
    const { eventHeader, recognises } = host;
    const isSender = recognises?.(headers) ?? (eventHeader !== null && headers[eventHeader] !== undefined);
    if (isSender) return host;
  }
  return unknownHost;
}

/**
 * The hosts, in the order in which they are tried: Forgejo sends Gitea's headers too, Gitea sends those of Gogs, and
 * all three send GitHub's. Both Bitbuckets share their event header: Cloud is tried first and recognises its own.
 */
export const hosts: readonly Host[] = [
  forgejo,
  gitea,
  gogs,
  github,
  gitlab,
  bitbucketCloud,
  bitbucketDataCenter,
  pagure,
  gitness,
  harness,
  gitee,
  onedev,
  sourcehut,
  azureDevops,
];

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
  "x-hub-signature-256",
  "x-forgejo-signature",
  "x-gitea-signature",
  "x-gogs-signature",
  "x-pagure-signature-256",
  "x-gitness-signature",
  "x-harness-signature",
);

/** Only Bitbucket has SHA-256 in this header, and sends no other; beside one of the headers above it is a SHA-1. */
const claimBitbucketSignature = bodySignatureIn("x-hub-signature");

function claimSignature(headers: IncomingHttpHeaders): SignatureClaim {
  for (const claim of [claimBodySignature, claimBitbucketSignature]) {
    const claimed = claim(headers);
    if (claimed.kind !== "missing") return claimed;
  }
  const claimed = claimStandardWebhookSignature(headers);
  if (claimed.kind !== "missing" || headers.authorization === undefined) return claimed;
  return { kind: "unsupported", help: passwordHelp };
}
