import { type Host, unsupportedHost } from "./host.ts";

const help =
  "OneDev sent its webhook secret as plain text, which does not prove who wrote the body, so it is refused. " +
  "OneDev has no setting that signs the body: remove this webhook, and change the secret if it is used elsewhere. " +
  "Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL.";

/**
 * OneDev, which names its event in the body only. Despite its name, `X-OneDev-Signature` is the secret itself: it must
 * never be logged.
 * https://code.onedev.io/onedev/server, notification/WebHookManager.java
 */
export const onedev: Host = unsupportedHost(
  "onedev",
  help,
  (headers) => headers["x-onedev-signature"] !== undefined,
);
