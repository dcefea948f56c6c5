import type { SwarmService } from "./swarm-service.ts";
import { hasFailed, type Task } from "./task.ts";

/** What a service has come to since the stack was deployed. */
export type Judgement =
  | { readonly kind: "pending" }
  | { readonly kind: "unchanged" | "started" | "updated" }
  | { readonly kind: "rolled_back" | "paused"; readonly message: string }
  | { readonly kind: "start_failed" };

/** What a service is judged by. */
export interface Evidence {
  /** As it was just before the deploy; null if it did not exist. */
  readonly before: SwarmService | null;
  readonly now: SwarmService;
  /** Its tasks that did not exist before the deploy. */
  readonly freshTasks: readonly Task[];
  /** For how long all its tasks have been running without a break. */
  readonly steadyMs: number;
  readonly sinceDeployMs: number;
  readonly hasHealthCheck: boolean;
  readonly mayEnd: boolean;
}

/** Without a health check, a task counts as good when it has run this long. */
const steadyEnoughMs = 3_000;

/** By then Swarm has begun an update. A change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/**
 * Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. An update status
 * from before the deploy says nothing about it: only one that began since (with another `StartedAt`) counts. It is
 * compared with the old one and not with a clock, because the manager's clock may differ from ours.
 */
export function judgeService(evidence: Evidence): Judgement {
  const { before, now } = evidence;
  if (before === null) return judgeFirstStart(evidence);
  const update = now.update;
  if (update && update.startedAt !== before.update?.startedAt) return judgeUpdate(update);
  if (now.definition !== before.definition) {
    const needsNoTasks = evidence.sinceDeployMs >= updateBeginsMs && isSteady(evidence);
    return { kind: needsNoTasks ? "unchanged" : "pending" };
  }
  if (update?.state === "paused" || update?.state === "rollback_paused") {
    return { kind: "paused", message: update.message };
  }
  return { kind: hasAllTasks(evidence) ? "unchanged" : "pending" };
}

function judgeUpdate({ state, message }: NonNullable<SwarmService["update"]>): Judgement {
  switch (state) {
    case "completed":
      return { kind: "updated" };
    case "rollback_completed":
      return { kind: "rolled_back", message };
    case "paused":
    case "rollback_paused":
      return { kind: "paused", message };
    case "updating":
    case "rollback_started":
      return { kind: "pending" };
  }
}

/** A new service has no update, and Swarm restarts its tasks forever without reporting a failure. */
function judgeFirstStart(evidence: Evidence): Judgement {
  const { freshTasks, mayEnd } = evidence;
  const failed = freshTasks.filter((task) => hasFailed(task) && !(mayEnd && isComplete(task)));
  if (failed.length > 0) return { kind: "start_failed" };
  return { kind: isSteady(evidence) ? "started" : "pending" };
}

function isSteady(evidence: Evidence): boolean {
  const { steadyMs, hasHealthCheck, mayEnd } = evidence;
  return hasAllTasks(evidence) && (hasHealthCheck || mayEnd || steadyMs >= steadyEnoughMs);
}

/** A service whose tasks may end needs no running ones after they have run once. */
function hasAllTasks({ before, now, freshTasks, mayEnd }: Evidence): boolean {
  const ended = mayEnd ? freshTasks.filter(isComplete).length : 0;
  const isOver = mayEnd && before !== null && now.definition === before.definition;
  return isOver || now.runningTasks + ended >= now.desiredTasks;
}

function isComplete({ state }: Task): boolean {
  return state === "complete";
}

/** What was seen of a service since the deploy. */
export interface Observation {
  /** When as many new tasks ran as are wanted. Swarm reports a task as running when its health check passes. */
  readonly healthyAfterMs: number | null;
  /** How long none of its tasks ran. */
  readonly downtimeMs: number;
  /** Since when all its tasks run; null while they do not. */
  readonly steadySinceMs: number | null;
  readonly atMs: number;
}

export const nothingSeen: Observation = {
  healthyAfterMs: null,
  downtimeMs: 0,
  steadySinceMs: null,
  atMs: 0,
};

/** Adds what is seen at `atMs` (milliseconds since the deploy). */
export function observe(
  seen: Observation,
  now: SwarmService,
  freshTasks: readonly Task[],
  atMs: number,
): Observation {
  const freshRunning = freshTasks.filter(({ state }) => state === "running").length;
  const hasAllFresh = now.desiredTasks > 0 && freshRunning >= now.desiredTasks;
  const isAway = now.runningTasks === 0 && now.desiredTasks > 0;
  return {
    healthyAfterMs: seen.healthyAfterMs ?? (hasAllFresh ? atMs : null),
    downtimeMs: seen.downtimeMs + (isAway ? atMs - seen.atMs : 0),
    steadySinceMs: now.runningTasks < now.desiredTasks ? null : (seen.steadySinceMs ?? atMs),
    atMs,
  };
}
