import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { findDeployment, liveCommit } from "../deployments/deployment.ts";
import { findPassedBy, findRollbackRef } from "../deployments/history.ts";
import type { Store } from "../deployments/store.ts";
import { rolloutState } from "../rollout/state.ts";
import { noGoodVersion, previousVersion, readVersions, type Version } from "../rollout/versions.ts";
import { deploymentJson } from "./deployment-json.ts";
import { jsonReply, type Route, refusal, reportedName } from "./route.ts";

/** Records a roll back to a good version: that of a deployment or a commit, else the previous one. */
export const requestRollback: Route = async (context, { body }) => {
  const { store, queue, refs, statePath, repoPath, hostDirectory, log } = context;
  const directory = body.directory ?? repoPath;
  if (typeof directory !== "string" || !isAbsolute(directory))
    return refusal(400, "The directory must be an absolute path.");
  const commit = typeof body.version === "string" ? commitOf(store, body.version) : undefined;
  // A roll-out identifies its project by this path, whichever path was given for the repository.
  const project = await hostDirectory(repoPath);
  if (directory !== project && !(await areSame(directory, repoPath)))
    return refusal(409, otherProject(repoPath, directory, commit));
  const versions = await readVersions(rolloutState(statePath, project).versionsPath);
  const version = previousVersion(versions, commit);
  if (!version) return refusal(409, `${noGoodVersion(versions, commit)}${passedBy(store, versions, commit)}`);
  const requestedBy = reportedName(body);
  const ref = findRollbackRef(store, refs);
  if (ref === null) return refusal(409, "Nothing was deployed yet, so there is nothing to go back from.");
  const deployment = queue.request({ trigger: "rollback", ref, commit: version.commit, requestedBy });
  const text = `Deployment ${deployment.id} goes back to ${version.commit}`;
  log.info({ event: "control.rollback", deployment: deployment.id, requestedBy }, text);
  return jsonReply({ deployment: deploymentJson(findDeployment(store, deployment.id) ?? deployment) }, 202);
};

/** The service's roll back runs in its own repository, and nowhere else. */
function otherProject(repoPath: string, directory: string, commit: string | undefined): string {
  const to = commit === undefined ? "" : ` --to ${commit}`;
  return `The service rolls back ${repoPath} only, and ${directory} is another directory. Nothing was changed. For that one: hotpush rollout --back${to} --directory ${directory}`;
}

/** Whether both paths lead to one directory, also through a link or a second mount. */
async function areSame(directory: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([directory, other].map((path) => stat(path).catch(() => null)));
  return directory === other || (one?.ino !== undefined && one.ino === two?.ino && one.dev === two.dev);
}

/** A short number is that of a deployment if there is one with it; everything else is the beginning of a commit. */
function commitOf(store: Store, wanted: string): string {
  const deployment = /^\d{1,9}$/.test(wanted) ? findDeployment(store, Number(wanted)) : null;
  return deployment ? liveCommit(deployment) : wanted.toLowerCase();
}

/** Explains which commit was deployed in place of `wanted`, if the branch had moved on when the script pulled. */
function passedBy(store: Store, versions: readonly Version[], wanted: string | undefined): string {
  const deployment = wanted === undefined ? null : findPassedBy(store, wanted);
  if (deployment === null) return "";
  const { id, ref, commit } = deployment;
  const live = liveCommit(deployment).slice(0, 12);
  const branch = ref.replace(/^refs\/heads\//, "");
  const command = previousVersion(versions, liveCommit(deployment)) ? `: hotpush rollback ${live}` : ".";
  return ` Deployment ${id} was asked for ${commit.slice(0, 12)}, but ${branch} was at ${live} by then, which was deployed instead${command}`;
}
