import { bodySignatureIn } from "./body-signature.ts";
import { readGithubPush } from "./github-push.ts";
import type { Host } from "./host.ts";

/**
 * GitHub and GitHub Enterprise Server. `X-Hub-Signature` carries the old SHA-1 beside the SHA-256 and is not read.
 * https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
 */
export const github: Host = {
  name: "github",
  eventHeader: "x-github-event",
  deliveryHeader: "x-github-delivery",
  claimSignature: bodySignatureIn({ header: "x-hub-signature-256", prefix: "sha256=" }),
  read(event, payload) {
    if (event === "ping") return { kind: "ping" };
    return event === "push" ? readGithubPush(payload) : { kind: "other-event", event };
  },
};
