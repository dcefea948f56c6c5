import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { liveCommit } from "../deployments/deployment.ts";
import { findPassedBy } from "../deployments/history.ts";
import { recordRollback } from "../deployments/record.ts";
import { findDeployment } from "../deployments/rows.ts";
import type { Store } from "../deployments/store.ts";
import { rolloutState } from "../rollout/state.ts";
import { noGoodVersion, previousVersion, readVersions, type Version } from "../rollout/versions.ts";
import type { ControlContext } from "./context.ts";
import { deploymentJson } from "./deployment-json.ts";
import { json, type Reply, refusal } from "./reply.ts";
import { reportedName } from "./request-body.ts";
import type { Asked } from "./routes.ts";

/** Records the wish to go back to a good version: that of a deployment or a commit, else the previous one. */
export async function rollBack(context: ControlContext, { body }: Asked): Promise<Reply> {
  const { store, queue, refs, statePath, repoPath, hostDirectory, log } = context;
  const directory = body.directory ?? repoPath;
  if (typeof directory !== "string" || !isAbsolute(directory))
    return refusal(400, "The directory is no absolute path.");
  const commit = typeof body.version === "string" ? commitOf(store, body.version) : undefined;
  // By this path the roll-out knows its project, whichever one the repository was named by.
  const project = await hostDirectory(repoPath);
  if (directory !== project && !(await areSame(directory, repoPath)))
    return refusal(409, otherProject(repoPath, directory, commit));
  const versions = await readVersions(rolloutState(statePath, project).versionsPath);
  const version = previousVersion(versions, commit);
  if (!version) return refusal(409, `${noGoodVersion(versions, commit)}${passedBy(store, versions, commit)}`);
  const requestedBy = reportedName(body);
  const deployment = recordRollback(store, refs, { commit: version.commit, requestedBy });
  if (!deployment) return refusal(409, "Nothing was deployed yet, so there is nothing to go back from.");
  log.info(
    { event: "control.rollback", deployment: deployment.id, requestedBy },
    `Deployment ${deployment.id} goes back to ${version.commit}`,
  );
  queue.wake();
  return json({ deployment: deploymentJson(findDeployment(store, deployment.id) ?? deployment) }, 202);
}

/** The roll-out of a roll back runs in the service's own repository, and nowhere else. */
function otherProject(repoPath: string, directory: string, commit: string | undefined): string {
  const to = commit === undefined ? "" : ` --to ${commit}`;
  return `The service rolls back ${repoPath} alone, and ${directory} is another directory. Nothing was changed. For that one: hotpush rollout --back${to} --directory ${directory}`;
}

/** Also by a link, and where it is mounted at both paths. */
async function areSame(directory: string, other: string): Promise<boolean> {
  const [one, two] = await Promise.all([directory, other].map((path) => stat(path).catch(() => null)));
  return directory === other || (one?.ino !== undefined && one.ino === two?.ino && one.dev === two.dev);
}

/** Short digits are a deployment's number where there is one of that number, else the first ones of a commit. */
function commitOf(store: Store, wanted: string): string {
  const deployment = /^\d{1,9}$/.test(wanted) ? findDeployment(store, Number(wanted)) : null;
  return deployment ? liveCommit(deployment) : wanted.toLowerCase();
}

/** Says what was deployed instead of a commit that the branch had left behind when the script pulled. */
function passedBy(store: Store, versions: readonly Version[], wanted: string | undefined): string {
  const deployment = wanted === undefined ? null : findPassedBy(store, wanted);
  if (deployment === null) return "";
  const { id, ref, commit } = deployment;
  const live = liveCommit(deployment);
  const branch = ref.replace(/^refs\/heads\//, "");
  const command = previousVersion(versions, live) ? `: hotpush rollback ${live.slice(0, 12)}` : ".";
  return ` Deployment ${id} was asked for ${commit.slice(0, 12)}, but ${branch} was at ${live.slice(0, 12)} by then, which was deployed instead${command}`;
}
