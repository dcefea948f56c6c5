import { stateDirectoryOf } from "#config/state-path";
import { type Deployment, liveCommit } from "#deployments/deployment";
import { findLastGood } from "#deployments/history";
import { findDeployment } from "#deployments/store";
import type { Log } from "#log";
import type { Store } from "#platform/sqlite";
import type { Project } from "#projects/project";
import { rolloutState } from "#rollout/lock";
import { noGoodVersion, previousVersion, readVersions, type Version } from "#rollout/versions";
import { type Refused, refuse } from "./context.ts";

/**
 * Goes to the good version of a deployment or a commit, else to the previous one. While a new version is guarded, the previous
 * one still runs: then that deployment goes back itself.
 *
 * @returns the deployment that goes back
 */
export async function rollBack(
  project: Project,
  wanted: string | undefined,
  requestedBy: string | null,
  log: Log,
): Promise<Deployment | Refused> {
  const { store, queue, refs } = project;
  const numbered = findNumbered(store, wanted);
  if (numbered !== null && numbered.project !== store.project)
    return refuse("not_possible", `Deployment ${numbered.id} is one of the project ${numbered.project}.`);
  const commit = numbered ? liveCommit(numbered) : wanted?.toLowerCase();
  // A roll-out identifies its project by this path, whichever path was given for the repository.
  const directory = await project.hostDirectory(project.settings.repoPath);
  const rolloutStatePath = stateDirectoryOf(project.script().environment);
  const versions = await readVersions(rolloutState(rolloutStatePath, directory).versionsPath);
  const guarded = queue.findGuarded();
  if (guarded !== null && isMeant(versions.at(-1), commit)) {
    queue.goBack(guarded.id);
    const text = `Deployment ${guarded.id} was guarded, and goes back to the version before`;
    log.info({ event: "control.rollback", deployment: guarded.id, requestedBy }, text);
    return guarded;
  }
  const version = previousVersion(versions, commit);
  if (!version) return refuse("not_possible", noGoodVersion(versions, commit));
  const good = findLastGood(store, refs) ?? findLastGood(store);
  if (good === null)
    return refuse("not_possible", "Nothing was deployed yet, so there is nothing to go back from.");
  // BRANCH may name a branch that was never deployed.
  const ref = refs.find((one) => one === good.ref) ?? refs[0] ?? good.ref;
  const deployment = queue.request({ trigger: "rollback", ref, commit: version.commit, requestedBy });
  const text = `Deployment ${deployment.id} goes back to ${version.commit}`;
  log.info({ event: "control.rollback", deployment: deployment.id, requestedBy }, text);
  return deployment;
}

/** While a version is guarded, the present one is the one before it. */
function isMeant(present: Version | undefined, commit: string | undefined): boolean {
  return present !== undefined && (commit === undefined || present.commit.startsWith(commit));
}

/** A short number is that of a deployment if there is one with it; everything else is the beginning of a commit. */
function findNumbered(store: Store, version = ""): Deployment | null {
  return /^\d{1,9}$/.test(version) ? findDeployment(store, Number(version)) : null;
}
