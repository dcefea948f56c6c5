import type { SwarmService } from "./swarm-service.ts";
import type { Task } from "./task.ts";

/** What was seen of a service since the deploy. */
export interface Observation {
  /** When as many new tasks ran as are wanted. Swarm calls a task running when its health check says so. */
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
