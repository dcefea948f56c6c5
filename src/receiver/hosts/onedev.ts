import type { Host } from "./host.ts";

/**
 * OneDev, which names its event in the body only. Despite its name, `X-OneDev-Signature` is the secret itself: it must
 * never be logged.
 * https://code.onedev.io/onedev/server, notification/WebHookManager.java
 */
export const onedev: Host = {
  name: "onedev",
  eventHeader: null,
  recognises: (headers) => headers["x-onedev-signature"] !== undefined,
  deliveryHeader: null,
  claimSignature: () => ({ kind: "unsupported", help }),
  read: (event) => ({ kind: "other-event", event }),
};

const help =
  "OneDev sent its webhook secret as plain text, which says nothing about who wrote the body, so it is refused. " +
  "OneDev has no setting that signs the body: remove this webhook, and change the secret if it is used elsewhere. " +
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL.";
