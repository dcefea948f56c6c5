import { logSuperseded } from "../deployments/enqueue.ts";
import { findLastRef } from "../deployments/history.ts";
import { recordRequest } from "../deployments/record.ts";
import { findDeployment } from "../deployments/rows.ts";
import { isCommitId } from "../receiver/push.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { json, type Reply, refusal } from "./reply.ts";
import { reportedName } from "./request-body.ts";
import type { Asked } from "./routes.ts";

/**
 * Records a deployment of what the branch is at the remote now. A person asked for it, so it runs even where the same
 * commit is deployed already; like a push it takes the place of what waits for the branch.
 */
export async function deployNow(context: ControlContext, { body }: Asked): Promise<Reply> {
  const refs = refsFor(context, body.ref);
  if (refs === null) return refusal(400, notDeployed(context));
  const found = await findHead(context, refs);
  if (typeof found === "string") return refusal(409, `Nothing to deploy: ${found}`);
  const { store, queue, feed, log } = context;
  const wish = { trigger: "manual", ...found, requestedBy: reportedName(body) } as const;
  const superseded: [number, number][] = [];
  const { id } = store.transaction(() => recordRequest(store, wish, (one, by) => superseded.push([one, by])));
  for (const [one, by] of superseded) {
    logSuperseded(log, one, by);
    feed.publish(one, { kind: "changed" });
  }
  log.info(
    { event: "control.deploy", deployment: id, ...found, requestedBy: wish.requestedBy },
    `Deployment ${id} was asked for by a command`,
  );
  queue.wake();
  const deployment = findDeployment(store, id);
  return deployment
    ? json({ deployment: deploymentJson(deployment) }, 202)
    : refusal(500, "It was not recorded.");
}

function notDeployed({ refs }: ControlContext): string {
  const names = refs.map((ref) => ref.replace("refs/heads/", ""));
  const only =
    names.length > 1
      ? `Only the branches ${names.join(" and ")} are deployed.`
      : `Only the branch ${names[0]} is deployed, because BRANCH names it.`;
  return `${only} To go back to an earlier commit: hotpush rollback <commit>`;
}

/** The branch asked for, else the one deployed last, else all that could be; null if it is none of those. */
function refsFor({ store, refs }: ControlContext, asked: unknown): readonly string[] | null {
  if (asked === undefined || asked === null) {
    const last = findLastRef(store, refs);
    return last === null ? refs : [last];
  }
  const ref = `refs/heads/${String(asked).replace(/^refs\/heads\//, "")}`;
  return refs.some((one) => one === ref) ? [ref] : null;
}

/** The first of `refs` that the remote has, or why there is none. */
async function findHead(
  { readRemoteHead }: ControlContext,
  refs: readonly string[],
): Promise<{ readonly ref: string; readonly commit: string } | string> {
  const reasons: string[] = [];
  for (const ref of refs) {
    const head = await readRemoteHead(ref);
    if (head.kind === "head" && isCommitId(head.commit)) return { ref, commit: head.commit };
    reasons.push(head.kind === "unknown" ? head.detail : `the remote gave no commit for ${ref}.`);
  }
  return [...new Set(reasons)].join(" ");
}
