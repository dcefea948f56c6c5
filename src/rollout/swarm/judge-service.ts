import { formatDuration } from "../../config/duration.ts";
import type { StackService } from "./stack.ts";
import { hasFailed, isUnderWay, type SwarmService, type Task, type UpdateStatus } from "./swarm-service.ts";

/** A service since the stack was deployed. */
export interface Observation {
  /** As it was just before the deploy; null if it did not exist. */
  readonly before: SwarmService | null;
  readonly now: SwarmService;
  /** The time of `now`, since the deploy. */
  readonly atMs: number;
  /** When as many new tasks ran as are wanted. Swarm reports a task as running when its health check passes. */
  readonly healthyAfterMs: number | null;
  /** How long none of its tasks ran. */
  readonly downtimeMs: number;
  /** Since when all its tasks run; null while they do not. */
  readonly steadySinceMs: number | null;
}

/** Adds to `last` how the service is `now`. */
export function observe(
  { before, now, atMs }: Pick<Observation, "before" | "now" | "atMs">,
  last: Observation | undefined,
): Observation {
  const { desiredTasks, runningTasks } = now;
  const freshRunning = freshTasks({ before, now }).filter(({ state }) => state === "running").length;
  const hasAllFresh = desiredTasks > 0 && freshRunning >= desiredTasks;
  const awayMs = runningTasks === 0 && desiredTasks > 0 ? atMs - (last?.atMs ?? 0) : 0;
  return {
    before,
    now,
    atMs,
    healthyAfterMs: last?.healthyAfterMs ?? (hasAllFresh ? atMs : null),
    downtimeMs: (last?.downtimeMs ?? 0) + awayMs,
    steadySinceMs: runningTasks < desiredTasks ? null : (last?.steadySinceMs ?? atMs),
  };
}

/** The tasks that did not exist before the deploy. */
export function freshTasks({ before, now }: Pick<Observation, "before" | "now">): readonly Task[] {
  const known = new Set(before?.tasks.map(({ id }) => id));
  return now.tasks.filter(({ id }) => !known.has(id));
}

/** What a service has come to since the stack was deployed. */
export type Judgement = "pending" | "unchanged" | "started" | "updated" | { readonly failure: string };

/** Without a health check, a task counts as good when it has run this long. */
const steadyEnoughMs = 3_000;

/** By then Swarm has begun an update. A change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/** Judges a service by its state, because `docker stack deploy` exits with 0 even after a roll back. */
export function judgeService(service: StackService, seen: Observation): Judgement {
  const judgement = judgeNow(service, seen);
  const { timeoutMs } = service.update;
  // A roll back by Swarm gets as much time again: the reason of the failure is known when it ends.
  const allowedMs = seen.now.update?.state === "rollback_started" ? 2 * timeoutMs : timeoutMs;
  if (judgement !== "pending" || seen.atMs <= allowedMs) return judgement;
  return { failure: `The update of ${service.name} was not done after ${formatDuration(seen.atMs)}.` };
}

/**
 * An update status from before the deploy says nothing: only one that began since (with another `StartedAt`) counts. It
 * is compared with the old one and not with a clock, because the manager's clock may differ from ours.
 */
function judgeNow(service: StackService, seen: Observation): Judgement {
  const { before, now, atMs } = seen;
  if (now.isJob) return "unchanged";
  if (before === null) return judgeFirstStart(service, seen);
  if (now.update && now.update.startedAt !== before.update?.startedAt) {
    return judgeUpdate(service, now.update);
  }
  if (now.definition !== before.definition) {
    return atMs >= updateBeginsMs && isSteady(service, seen) ? "unchanged" : "pending";
  }
  if (now.update?.state.endsWith("paused")) return judgeUpdate(service, now.update);
  return hasAllTasks(service, seen) ? "unchanged" : "pending";
}

function judgeUpdate({ name }: StackService, update: UpdateStatus): Judgement {
  if (isUnderWay(update)) return "pending";
  if (update.state === "completed") return "updated";
  const what =
    update.state === "rollback_completed"
      ? `The new version of ${name} failed, and Swarm went back to the old one`
      : `Swarm paused the update of ${name}`;
  return { failure: `${what} (${update.message}).` };
}

/** A new service has no update, and Swarm restarts its tasks forever without reporting a failure. */
function judgeFirstStart(service: StackService, seen: Observation): Judgement {
  const isFailure = (task: Task) => hasFailed(task) && !(service.mayEnd && task.state === "complete");
  if (freshTasks(seen).some(isFailure)) return { failure: `${service.name} could not be started.` };
  return isSteady(service, seen) ? "started" : "pending";
}

function isSteady(service: StackService, seen: Observation): boolean {
  const steadyMs = seen.steadySinceMs === null ? 0 : seen.atMs - seen.steadySinceMs;
  const needsNoTime = service.hasHealthCheck || service.mayEnd;
  return hasAllTasks(service, seen) && (needsNoTime || steadyMs >= steadyEnoughMs);
}

/** A service whose tasks may end needs no running ones after they have run once. */
function hasAllTasks({ mayEnd }: StackService, seen: Observation): boolean {
  const { before, now } = seen;
  const isOver = mayEnd && now.definition === before?.definition;
  const ended = mayEnd ? freshTasks(seen).filter(({ state }) => state === "complete").length : 0;
  return isOver || now.runningTasks + ended >= now.desiredTasks;
}
