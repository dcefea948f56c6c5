import type { IncomingHttpHeaders } from "node:http";
import { type Host, unsupportedHost } from "./host.ts";

/** What to do about a webhook of Azure DevOps. */
export const azureDevopsAdvice =
  "Azure DevOps has no setting that signs the body: remove its service hook, and change the password if it is used " +
  "elsewhere. Once a branch was deployed, Hotpush finds its new commits without one, every CATCH_UP_INTERVAL; to deploy " +
  'at once, let a pipeline send a signed push (docs/git-hosts.md, "Your own sender").';

const help =
  "Azure DevOps sent no signature: the password or the headers that it can send do not prove who wrote the body, " +
  `so it is refused. ${azureDevopsAdvice}`;

/**
 * Azure DevOps. Its service hooks send a password (HTTP Basic) or headers that the owner chose, and name the event in the
 * body only. Microsoft documents no header of its own; these are the ones that github.com/mcdafydd/go-azuredevops and Argo
 * CD read. Some deliveries have none of them: `unknownHost` answers those with only a password.
 * https://learn.microsoft.com/azure/devops/service-hooks/services/webhooks
 */
export const azureDevops: Host = unsupportedHost("azure-devops", help, isSentByAzure);

function isSentByAzure(headers: IncomingHttpHeaders): boolean {
  const isNamed = headers["x-vss-subscriptionid"] !== undefined || headers["x-vss-activityid"] !== undefined;
  return isNamed || headers["user-agent"]?.startsWith("VSServices/") === true;
}
