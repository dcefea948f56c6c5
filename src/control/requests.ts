import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import { type Deployment, findDeployment, liveCommit } from "../deployments/deployment.ts";
import {
  findLastRef,
  findPassedBy,
  findRollbackRef,
  findRunning,
  listWaiting,
} from "../deployments/history.ts";
import { isCommitId } from "../deployments/push.ts";
import { isFinished } from "../deployments/states.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { rolloutState } from "../rollout/lock.ts";
import { noGoodVersion, previousVersion, readVersions, type Version } from "../rollout/versions.ts";
import { type DeploymentJson, deploymentJson } from "./deployment-json.ts";
import { notFound } from "./history.ts";
import { type PauseJson, pauseJson } from "./pause.ts";
import {
  type ControlContext,
  type ControlReply,
  jsonReply,
  type Route,
  refusal,
  reportedName,
} from "./route.ts";

/** The answer to a request of a command: the deployment as it is by now, and the pause that it waits for, if any. */
export interface RequestedJson {
  readonly deployment: DeploymentJson;
  readonly paused: PauseJson | null;
}

/**
 * Records a deployment of the branch's present head at the remote. A person requested it, so it runs even if the same
 * commit is deployed already. Like a push it supersedes what waits for the branch.
 */
export const deployNow: Route = async (context, { body }) => {
  if (!context.isServed) return noSettings(context);
  const refs = candidateRefs(context, body.ref);
  if (refs === null) return refusal(400, notDeployed(context));
  const head = await findHead(context, refs);
  if (typeof head === "string") return refusal(409, `Nothing to deploy: ${head}`);
  const { store, queue, log } = context;
  const requestedBy = reportedName(body);
  const deployment = queue.request({ trigger: "manual", ...head, requestedBy });
  const text = `Deployment ${deployment.id} was requested by a command`;
  log.info({ event: "control.deploy", deployment: deployment.id, ...head, requestedBy }, text);
  return accepted(store, deployment);
};

/**
 * Records a roll back to a good version: that of a deployment or a commit, else the previous one. While a new version is
 * guarded, the previous one still runs: then that deployment goes back itself.
 */
export const requestRollback: Route = async (context, { body }) => {
  if (!context.isServed) return noSettings(context);
  const { store, queue, refs, rolloutStatePath, repoPath, hostDirectory, log } = context;
  const directory = body.directory ?? repoPath;
  if (typeof directory !== "string" || !isAbsolute(directory))
    return refusal(400, "The directory must be an absolute path.");
  const numbered = findNumbered(store, body.version);
  if (numbered !== null && numbered.project !== store.project)
    return refusal(409, `Deployment ${numbered.id} is one of the project ${numbered.project}.`);
  const wanted = typeof body.version === "string" ? body.version.toLowerCase() : undefined;
  const commit = numbered ? liveCommit(numbered) : wanted;
  // A roll-out identifies its project by this path, whichever path was given for the repository.
  const project = await hostDirectory(repoPath);
  if (directory !== project && !(await areSame(directory, repoPath)))
    return refusal(409, otherProject(repoPath, directory, commit));
  const versions = await readVersions(rolloutState(rolloutStatePath, project).versionsPath);
  const requestedBy = reportedName(body);
  const guarded = queue.findGuarded();
  if (guarded !== null && isMeant(versions.at(-1), commit)) {
    queue.goBack(guarded.id);
    const text = `Deployment ${guarded.id} was guarded, and goes back to the version before`;
    log.info({ event: "control.rollback", deployment: guarded.id, requestedBy }, text);
    return accepted(store, guarded);
  }
  const version = previousVersion(versions, commit);
  if (!version) return refusal(409, `${noGoodVersion(versions, commit)}${passedBy(store, versions, commit)}`);
  const ref = findRollbackRef(store, refs);
  if (ref === null) return refusal(409, "Nothing was deployed yet, so there is nothing to go back from.");
  const deployment = queue.request({ trigger: "rollback", ref, commit: version.commit, requestedBy });
  const text = `Deployment ${deployment.id} goes back to ${version.commit}`;
  log.info({ event: "control.rollback", deployment: deployment.id, requestedBy }, text);
  return accepted(store, deployment);
};

/** While a version is guarded, the present one is the one before it. */
function isMeant(present: Version | undefined, commit: string | undefined): boolean {
  return present !== undefined && (commit === undefined || present.commit.startsWith(commit));
}

/** Cancels a deployment: a queued one at once; a running one by terminating its script, which takes a moment. */
export const cancelDeployment: Route = ({ store, queue, log }, { id: wanted, body }) => {
  const deployment =
    wanted === null ? (findRunning(store) ?? listWaiting(store)[0]) : findDeployment(store, wanted);
  if (!deployment) {
    if (wanted !== null) return notFound(wanted);
    return refusal(409, "No deployment runs or waits, so there is nothing to cancel.");
  }
  const { id, state } = deployment;
  if (isFinished(state)) {
    const ending = state.replace("_", " ");
    return refusal(409, `Deployment ${id} is ${ending} already, so there is nothing to cancel.`);
  }
  const requestedBy = reportedName(body);
  if (!queue.cancel(id, requestedBy)) {
    return refusal(409, `Deployment ${id} cannot be cancelled right now (${state}). Try again in a second.`);
  }
  const text = `Deployment ${id} is cancelled by a command`;
  log.info({ event: "control.cancel", deployment: id, requestedBy }, text);
  return accepted(store, deployment);
};

/** Its deployment would wait for settings that may never come. */
function noSettings({ project }: ControlContext): ControlReply {
  return refusal(409, `The file of project ${project} was removed, so nothing of it is deployed.`);
}

function accepted(store: Store, requested: Deployment): ControlReply {
  const deployment = deploymentJson(findDeployment(store, requested.id) ?? requested);
  return jsonReply({ deployment, paused: pauseJson(store) } satisfies RequestedJson, 202);
}

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
    reasons.add(head.kind === "head" ? `the remote gave no commit for ${ref}.` : head.detail);
  }
  return [...reasons].join(" ");
}

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
function findNumbered(store: Store, version: unknown): Deployment | null {
  return /^\d{1,9}$/.test(String(version)) ? findDeployment(store, Number(version)) : null;
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
