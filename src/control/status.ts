import { formatDuration } from "../config/duration.ts";
import type { CatchUpReport } from "../deployments/catch-up.ts";
import type { Deployment } from "../deployments/deployment.ts";
import { findRunning, listLastOfBranches, listRunning, listWaiting } from "../deployments/history.ts";
import type { SecretUse, SecretUses } from "../deployments/secret-uses.ts";
import { listSteps } from "../deployments/steps.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { readVersion } from "../version.ts";
import { type DeploymentJson, deploymentJson, instant, type StepJson, stepJson } from "./deployment-json.ts";
import { type HoldJson, holdJson } from "./hold.ts";
import { type PauseJson, pauseJson } from "./pause.ts";
import { listProjects, type ProjectJson } from "./projects.ts";
import { type ControlContext, type ControlSources, jsonReply, type Route, type WholeRoute } from "./route.ts";

/** What `hotpush status --json` prints; docs/cli.md has each member. */
export interface StatusJson {
  readonly version: string;
  readonly startedAt: string;
  /** null: another process receives the pushes. */
  readonly address: string | null;
  readonly port: number | null;
  readonly project: string;
  readonly repoPath: string;
  /** The branches that are deployed. */
  readonly branches: readonly string[];
  readonly statePath: string;
  /** null if nothing runs; `step` is null before the first one. */
  readonly running: { readonly deployment: DeploymentJson; readonly step: StepJson | null } | null;
  readonly waiting: readonly DeploymentJson[];
  readonly last: readonly DeploymentJson[];
  readonly health: { readonly isHealthy: boolean; readonly detail: string | null };
  readonly catchUp: {
    readonly intervalMs: number;
    readonly lookedAt: string | null;
    readonly failure: string | null;
  };
  readonly secrets: SecretsJson;
  /** null if the queue is not paused. */
  readonly paused: PauseJson | null;
  /** null if deployments of all projects may start. */
  readonly hold: HoldJson | null;
  /** What is wrong with the server: a sentence for each fault. */
  readonly serverFaults: readonly string[];
  /** What is wrong with the project's settings, or null. */
  readonly fault: string | null;
  /** null if pushes come over a port of this process. */
  readonly inbox: InboxJson | null;
}

/** The same for all projects of a machine. */
export interface WholeStatusJson
  extends Pick<
    StatusJson,
    | "version"
    | "startedAt"
    | "address"
    | "port"
    | "statePath"
    | "waiting"
    | "last"
    | "health"
    | "serverFaults"
    | "hold"
    | "inbox"
  > {
  readonly running: readonly NonNullable<StatusJson["running"]>[];
  readonly projects: readonly ProjectJson[];
}

export interface InboxJson {
  readonly reachedAt: string | null;
  readonly failure: string | null;
}

export const showStatus: Route = (context) => {
  const { store, startedAtMs, address, repoPath, refs, statePath, catchUp, secretUses } = context;
  const running = findRunning(store);
  return jsonReply({
    version: readVersion(),
    startedAt: instant(startedAtMs),
    address: address?.address ?? null,
    port: address?.port ?? null,
    project: context.project,
    repoPath,
    branches: refs.map((ref) => ref.replace("refs/heads/", "")),
    statePath,
    running: running && runningJson(store, running),
    waiting: listWaiting(store).map(deploymentJson),
    last: listLastOfBranches(store).map(deploymentJson),
    health: healthJson(context),
    serverFaults: context.findServerFaults(),
    catchUp: catchUpJson(catchUp.report()),
    secrets: judgeSecrets(secretUses.read(), Date.now()),
    paused: pauseJson(store),
    hold: holdJson(context.turns),
    fault: context.fault,
    inbox: inboxJson(context.taking),
  } satisfies StatusJson);
};

/** For a program that asks every few seconds, such as Docker: the same answer as that of the webhook's port. */
export const showHealth: WholeRoute = ({ findFault }) => {
  const detail = findFault();
  return detail === null ? jsonReply({ status: "ok" }) : jsonReply({ detail }, 503);
};

export const showWholeStatus: WholeRoute = (sources) => {
  const { store, startedAtMs, address, statePath, taking } = sources;
  return jsonReply({
    version: readVersion(),
    startedAt: instant(startedAtMs),
    address: address?.address ?? null,
    port: address?.port ?? null,
    statePath,
    running: listRunning(store).map((deployment) => runningJson(store, deployment)),
    waiting: listWaiting(store).map(deploymentJson),
    last: listLastOfBranches(store).map(deploymentJson),
    health: healthJson(sources),
    serverFaults: sources.findServerFaults(),
    hold: holdJson(sources.turns),
    inbox: inboxJson(taking),
    projects: listProjects(sources),
  } satisfies WholeStatusJson);
};

/** Whether pushes are received and deployed. A restart helps against less than that, so Docker asks `showHealth`. */
function healthJson({
  findFault,
  taking,
}: Pick<ControlSources, "findFault" | "taking">): StatusJson["health"] {
  const inbox = inboxJson(taking);
  const isReached = inbox === null || (inbox.reachedAt !== null && inbox.failure === null);
  const detail = findFault() ?? (isReached ? null : unreached);
  return { isHealthy: detail === null, detail };
}

const unreached = "No pushes come: front does not call, or its spool cannot be read.";

function inboxJson(taking: ControlContext["taking"]): InboxJson | null {
  if (taking === null) return null;
  const { reachedAtMs, failure } = taking.report();
  return { reachedAt: reachedAtMs === null ? null : instant(reachedAtMs), failure };
}

function runningJson(store: Store, deployment: Deployment): NonNullable<StatusJson["running"]> {
  const step = listSteps(store, deployment).findLast(({ attempt }) => attempt === deployment.attempts);
  return { deployment: deploymentJson(deployment), step: step ? stepJson(step) : null };
}

function catchUpJson({ intervalMs, lookedAtMs, failure }: CatchUpReport): StatusJson["catchUp"] {
  return { intervalMs, lookedAt: lookedAtMs === null ? null : instant(lookedAtMs), failure };
}

export interface SecretJson {
  readonly knownSince: string;
  readonly lastUsedAt: string | null;
  readonly host: string | null;
  readonly deliveryId: string | null;
}

export interface SecretsJson {
  readonly current: SecretJson;
  readonly previous: SecretJson | null;
  /** null if there is no previous one. */
  readonly canDropPrevious: boolean | null;
  readonly advice: string | null;
}

const dayMs = 24 * 3_600_000;
/** In most projects, every webhook is used within this time. */
const quietMs = 7 * dayMs;

/**
 * Decides whether the previous secret is safe to drop: the current one has signed a delivery since the previous one last
 * did, and the previous one has signed none for seven days.
 */
export function judgeSecrets(
  { current, previous }: ReturnType<SecretUses["read"]>,
  nowMs: number,
): SecretsJson {
  const advice = previous && adviceOn(current, previous, nowMs);
  return {
    current: secretJson(current),
    previous: previous && secretJson(previous),
    canDropPrevious: advice === null ? null : advice === safeToDrop,
    advice,
  };
}

const safeToDrop =
  "Safe to drop: not used for 7 days, and the current secret was used since. Run: hotpush secret drop-previous";

function adviceOn(current: SecretUse, previous: SecretUse, nowMs: number): string {
  // Before the current secret was known, nothing was observed.
  const quietSinceMs = Math.max(previous.lastUsedAtMs ?? 0, current.knownSinceMs);
  const isCurrentUsed = (current.lastUsedAtMs ?? 0) > (previous.lastUsedAtMs ?? 0);
  if (!isCurrentUsed)
    return "Not safe to drop: the current secret was not used since. Set it in the webhook's form at the git host.";
  if (nowMs - quietSinceMs >= quietMs) return safeToDrop;
  const quiet = age(nowMs - quietSinceMs);
  return `Safe to drop when it was not used for 7 days; so far ${quiet}. The current secret was used since. If only one webhook had it, drop it now: hotpush secret drop-previous --force`;
}

function secretJson({ knownSinceMs, lastUsedAtMs, host, deliveryId }: SecretUse): SecretJson {
  const lastUsedAt = lastUsedAtMs === null ? null : instant(lastUsedAtMs);
  return { knownSince: instant(knownSinceMs), lastUsedAt, host, deliveryId };
}

function age(ms: number): string {
  return ms < 2 * dayMs ? formatDuration(Math.max(0, ms)) : `${Math.floor(ms / dayMs)} days`;
}
