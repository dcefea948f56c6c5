import { findDeployment } from "../deployments/deployment.ts";
import { findLastRef } from "../deployments/history.ts";
import { isCommitId } from "../receiver/push.ts";
import { deploymentJson } from "./deployment-json.ts";
import { type ControlContext, jsonReply, type Route, refusal, reportedName } from "./route.ts";

/**
 * Records a deployment of the branch's present head at the remote. A person requested it, so it runs even if the same
 * commit is deployed already. Like a push it supersedes what waits for the branch.
 */
export const deployNow: Route = async (context, { body }) => {
  const refs = candidateRefs(context, body.ref);
  if (refs === null) return refusal(400, notDeployed(context));
  const head = await findHead(context, refs);
  if (typeof head === "string") return refusal(409, `Nothing to deploy: ${head}`);
  const { store, queue, log } = context;
  const requestedBy = reportedName(body);
  const { id } = queue.request({ trigger: "manual", ...head, requestedBy });
  const text = `Deployment ${id} was requested by a command`;
  log.info({ event: "control.deploy", deployment: id, ...head, requestedBy }, text);
  const deployment = findDeployment(store, id);
  return deployment
    ? jsonReply({ deployment: deploymentJson(deployment) }, 202)
    : refusal(500, "The deployment was not recorded.");
};

/** The requested branch, else the one deployed last, else every branch that is deployed; null if it is none of them. */
function candidateRefs({ store, refs }: ControlContext, wanted: unknown): readonly string[] | null {
  if (wanted === undefined || wanted === null) {
    const last = findLastRef(store, refs);
    return last === null ? refs : [last];
  }
  const ref = `refs/heads/${String(wanted).replace(/^refs\/heads\//, "")}`;
  return refs.some((one) => one === ref) ? [ref] : null;
}

function notDeployed({ refs }: ControlContext): string {
  const names = refs.map((ref) => ref.replace("refs/heads/", ""));
  const only =
    names.length > 1
      ? `Only the branches ${names.join(" and ")} are deployed.`
      : `Only the branch ${names[0]} is deployed, because BRANCH names it.`;
  return `${only} To go back to an earlier commit: hotpush rollback <commit>`;
}

/** The first of `refs` that the remote has, or the reasons why there is none. */
async function findHead(
  { readRemoteHead }: ControlContext,
  refs: readonly string[],
): Promise<{ readonly ref: string; readonly commit: string } | string> {
  const reasons = new Set<string>();
  for (const ref of refs) {
    const head = await readRemoteHead(ref);
    if (head.kind === "head" && isCommitId(head.commit)) return { ref, commit: head.commit };
    reasons.add(head.kind === "unknown" ? head.detail : `the remote gave no commit for ${ref}.`);
  }
  return [...reasons].join(" ");
}
