import type { SwarmService } from "./swarm-service.ts";
import { hasFailed, type Task } from "./task.ts";

/** What has become of a service since the stack was deployed. */
export type Judgement =
  | { readonly kind: "pending" }
  | { readonly kind: "unchanged" | "started" | "updated" }
  | { readonly kind: "rolled_back" | "paused"; readonly message: string }
  | { readonly kind: "start_failed" };

/** What it is judged by. */
export interface Evidence {
  /** As it was just before the deploy; null where it did not exist. */
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

/** By then Swarm has begun an update; a change that needs no new tasks never gets one. */
const updateBeginsMs = 10_000;

/**
 * The state decides, not the exit code of `docker stack deploy`, which is 0 after a roll back too. An update status
 * that was there before the deploy says nothing about it: only one that began since (`StartedAt` is another) counts.
 * It is compared with the old one rather than with a clock, because the manager's clock need not be ours.
 */
export function judge(evidence: Evidence): Judgement {
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
  return { kind: isComplete(evidence) ? "unchanged" : "pending" };
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

/** A service that is new has no update, and Swarm starts its tasks again and again without ever calling that a failure. */
function judgeFirstStart(evidence: Evidence): Judgement {
  const { freshTasks, mayEnd } = evidence;
  if (freshTasks.some((task) => hasFailed(task) && !(mayEnd && hasEndedWell(task))))
    return { kind: "start_failed" };
  return { kind: isSteady(evidence) ? "started" : "pending" };
}

function isSteady(evidence: Evidence): boolean {
  const { steadyMs, hasHealthCheck, mayEnd } = evidence;
  return isComplete(evidence) && (hasHealthCheck || mayEnd || steadyMs >= steadyEnoughMs);
}

/** A service whose tasks may end needs none that run, once they did: that it ran before is enough. */
function isComplete({ before, now, freshTasks, mayEnd }: Evidence): boolean {
  const ended = mayEnd ? freshTasks.filter(hasEndedWell).length : 0;
  const isOver = mayEnd && before !== null && now.definition === before.definition;
  return isOver || now.runningTasks + ended >= now.desiredTasks;
}

function hasEndedWell({ state }: Task): boolean {
  return state === "complete";
}
