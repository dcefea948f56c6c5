import { isAbsolute } from "node:path";
import { findDeployment } from "../deployments/record.ts";
import { recordRollback } from "../deployments/roll-back.ts";
import type { Store } from "../deployments/store.ts";
import { rolloutState } from "../rollout/state.ts";
import { previousVersion, readVersions } from "../rollout/versions.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { json, type Reply, refusal } from "./reply.ts";
import type { Asked } from "./routes.ts";

/** Records the wish to go back to a good version: that of a deployment or a commit, else the previous one. */
export async function rollBack(context: ControlContext, { body }: Asked): Promise<Reply> {
  const { store, queue, statePath, repoPath, hostDirectory, log } = context;
  const directory = body.directory ?? repoPath;
  if (typeof directory !== "string" || !isAbsolute(directory))
    return refusal(400, "The directory is no absolute path.");
  const commit = typeof body.version === "string" ? commitOf(store, body.version) : undefined;
  const project = await hostDirectory(directory);
  const versions = await readVersions(rolloutState(statePath, project).versionsPath);
  const version = previousVersion(versions, commit);
  if (!version) {
    const known = versions.map((one) => one.commit.slice(0, 12)).join(", ") || "none";
    const which = commit ? `of ${commit}` : "before the present one";
    return refusal(
      409,
      `There is no good version ${which} to go back to. Good versions, oldest first: ${known}. Nothing was changed.`,
    );
  }
  const deployment = recordRollback(store, version.commit);
  if (!deployment) return refusal(409, "Nothing was deployed yet, so there is nothing to go back from.");
  log.info(
    { event: "control.rollback", deployment: deployment.id },
    `Deployment ${deployment.id} goes back to ${version.commit}`,
  );
  queue.wake();
  return json({ deployment: deploymentJson(findDeployment(store, deployment.id) ?? deployment) }, 202);
}

/** Short digits are a deployment's number where there is one of that number, else the first ones of a commit. */
function commitOf(store: Store, wanted: string): string {
  const deployment = /^\d{1,9}$/.test(wanted) ? findDeployment(store, Number(wanted)) : null;
  return deployment?.commit ?? wanted.toLowerCase();
}
