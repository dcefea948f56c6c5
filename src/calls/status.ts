import { type Deployment, liveCommit } from "#deployments/deployment";
import {
  findLastGood,
  listDeployments,
  listLastOfBranches,
  listRunning,
  listWaiting,
} from "#deployments/history";
import { findPause, findRunning, listSteps, type SecretUse } from "#deployments/store";
import type { Store } from "#platform/sqlite";
import type { Project } from "#projects/project";
import { readVersion } from "#version";
import type { ServiceContext } from "./context.ts";
import {
  type DeploymentJson,
  deploymentJson,
  holdJson,
  instant,
  instantOrNull,
  type ProjectJson,
  pauseJson,
  type SecretsJson,
  type StatusJson,
  stepJson,
  type WholeStatusJson,
} from "./shapes.ts";
import { webAddress } from "./web-address.ts";

/** What runs and waits of all projects, and how the service is. */
export function wholeStatus(run: ServiceContext): WholeStatusJson {
  const { store } = run;
  const running = listRunning(store).map((deployment) => runningJson(store, deployment));
  return { ...commonStatus(run, store), running, projects: listProjects(run) };
}

/** The same of one project. */
export function projectStatus(run: ServiceContext, project: Project): StatusJson {
  const { name, store, refs, catchUp, settings } = project;
  const running = findRunning(store);
  const { lookedAtMs, intervalMs, failure } = catchUp.report();
  return {
    ...commonStatus(run, store),
    project: name,
    repoPath: settings.repoPath,
    branches: branchesOf(refs),
    running: running && runningJson(store, running),
    catchUp: { intervalMs, lookedAt: instantOrNull(lookedAtMs), failure },
    secrets: judgeSecrets(project.secretUses(), Date.now()),
    paused: pauseJson(findPause(store)),
    fault: run.projects.faults().get(name) ?? null,
    missed: run.inbox.missedOf(project),
  };
}

function commonStatus(run: ServiceContext, store: Store) {
  const { startedAtMs, turns, inbox, isSplit } = run;
  const address = run.address();
  const { reachedAtMs, failure } = inbox.report();
  const isReached = !isSplit || (reachedAtMs !== null && failure === null);
  const unreached = "No pushes come: front does not call, or its spool cannot be read.";
  // A restart helps against less than that, so Docker asks the call `health`.
  const detail = run.findFault() ?? (isReached ? null : unreached);
  return {
    version: readVersion(),
    startedAt: instant(startedAtMs),
    statePath: run.service.statePath,
    address: address?.address ?? null,
    port: address?.port ?? null,
    waiting: listWaiting(store).map((one) => currentJson(run, one)),
    last: listLastOfBranches(store).map(deploymentJson),
    health: { isHealthy: detail === null, detail },
    serverFaults: run.findServerFaults(),
    hold: holdJson(turns.holds()),
    inbox: isSplit ? { reachedAt: instantOrNull(reachedAtMs), failure } : null,
  };
}

/** A deployment with the current reason why it waits, if it does. */
export function currentJson(run: ServiceContext, deployment: Deployment): DeploymentJson {
  return { ...deploymentJson(deployment), waitReason: whyWaits(run, deployment) };
}

function whyWaits({ store, turns }: ServiceContext, deployment: Deployment): string | null {
  const { project, state, waitReason } = deployment;
  if (state !== "queued" && state !== "interrupted") return waitReason;
  const [hold] = turns.holds();
  if (hold !== undefined) return `No deployment starts until this is done: ${hold.reason}`;
  if (findPause(store.of(project)) !== null) return "The queue is paused. To resume it: hotpush resume";
  if (waitReason !== null) return waitReason;
  const running = listRunning(store);
  const first = running.find((one) => one.project === project) ?? running[0];
  if (first === undefined) return null;
  const whose = first.project === project ? "" : ` of ${first.project}`;
  return `Deployment ${first.id}${whose} is running, and comes first.`;
}

function runningJson(store: Store, deployment: Deployment): NonNullable<StatusJson["running"]> {
  const step = listSteps(store, deployment).findLast(({ attempt }) => attempt === deployment.attempts);
  return { deployment: deploymentJson(deployment), step: step ? stepJson(step) : null };
}

/** All projects by name, also those whose settings were never good; one that was removed only as long as it is deployed. */
export function listProjects({ projects, inbox }: ServiceContext): readonly ProjectJson[] {
  const faults = projects.faults();
  const served = projects
    .list()
    .map((project) => projectJson(project, faults.get(project.name) ?? null, inbox.missedOf(project)))
    .filter(({ isServed, fault, last }) => isServed || fault !== null || last?.state === "running");
  const names = new Set(served.map(({ name }) => name));
  const unserved = { repoPath: null, webUrl: null, branches: [], live: null, last: null, waiting: 0 };
  const broken = [...faults]
    .filter(([name]) => !names.has(name))
    .map(([name, fault]) => ({ ...unserved, missed: [], paused: null, isServed: false, name, fault }));
  return [...served, ...broken].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function projectJson(
  { name, store, settings, refs, isServed }: Project,
  fault: string | null,
  missed: ProjectJson["missed"],
): ProjectJson {
  const good = findLastGood(store);
  const last =
    findRunning(store) ??
    listDeployments(store, { limit: 100 }).find(({ state }) => state !== "superseded" && state !== "skipped");
  const { repoPath } = settings;
  return {
    name,
    repoPath,
    webUrl: webAddress(repoPath),
    branches: branchesOf(refs),
    fault,
    missed,
    isServed,
    live: good && {
      commit: liveCommit(good),
      subject: good.subject,
      author: good.author,
      since: instantOrNull(good.finishedAtMs),
    },
    last: last ? deploymentJson(last) : null,
    waiting: listWaiting(store).length,
    paused: pauseJson(findPause(store)),
  };
}

export function branchesOf(refs: readonly string[]): readonly string[] {
  return refs.map((ref) => ref.replace("refs/heads/", ""));
}

const dayMs = 24 * 3_600_000;
/** In most projects, every webhook is used within this time. */
const quietMs = 7 * dayMs;

/**
 * Decides whether the previous secret is safe to drop: the current one has signed a delivery since the previous one last
 * did, and the previous one has signed none for seven days.
 */
export function judgeSecrets(
  { current, previous }: ReturnType<Project["secretUses"]>,
  nowMs: number,
): SecretsJson {
  // Before the current secret was known, nothing was observed.
  const silentMs = nowMs - Math.max(previous?.lastUsedAtMs ?? 0, current.knownSinceMs);
  const isReplaced = (current.lastUsedAtMs ?? 0) > (previous?.lastUsedAtMs ?? 0);
  const days = Math.floor(silentMs / dayMs);
  const advice = !isReplaced
    ? "Not safe to drop: the current secret was not used since. Set it in the webhook's form at the git host."
    : silentMs < quietMs
      ? `Safe to drop when it was not used for 7 days; so far ${days}. The current secret was used since. If only one webhook had it, drop it now: hotpush secret drop-previous --force`
      : "Safe to drop: not used for 7 days, and the current secret was used since. Run: hotpush secret drop-previous";
  return {
    current: secretJson(current),
    previous: previous && secretJson(previous),
    canDropPrevious: previous && isReplaced && silentMs >= quietMs,
    advice: previous && advice,
  };
}

function secretJson({ knownSinceMs, lastUsedAtMs, host, deliveryId }: SecretUse): SecretsJson["current"] {
  return { knownSince: instant(knownSinceMs), lastUsedAt: instantOrNull(lastUsedAtMs), host, deliveryId };
}
