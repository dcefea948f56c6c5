import type { IncomingHttpHeaders } from "node:http";
import type { Host } from "./host.ts";

/** What somebody can do whose webhook Azure DevOps sends. */
export const azureDevopsAdvice =
  "Azure DevOps has no setting that signs the body: remove its service hook, and change the password if it is used " +
  "elsewhere. Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL; to be " +
  'told at once, let a pipeline send a signed push (docs/git-hosts.md, "Your own sender").';

/**
 * Azure DevOps, whose service hooks are sent with a password (HTTP Basic) or headers of the owner's, and its event in
 * the body only. Microsoft names no header that is its own; these are the ones that github.com/mcdafydd/go-azuredevops
 * and Argo CD read. Not every delivery has one: what comes with a password alone is for `unknownHost`.
 * https://learn.microsoft.com/azure/devops/service-hooks/services/webhooks
 */
export const azureDevops: Host = {
  name: "azure-devops",
  eventHeader: null,
  recognises: isSentByAzure,
  deliveryHeader: null,
  claimSignature: () => ({ kind: "unsupported", help }),
  read: (event) => ({ kind: "other-event", event }),
};

const help =
  "Azure DevOps sent no signature: the password or the headers that it can send say nothing about who wrote the body, " +
  `so it is refused. ${azureDevopsAdvice}`;

function isSentByAzure(headers: IncomingHttpHeaders): boolean {
  const isNamed = headers["x-vss-subscriptionid"] !== undefined || headers["x-vss-activityid"] !== undefined;
  return isNamed || headers["user-agent"]?.startsWith("VSServices/") === true;
}
