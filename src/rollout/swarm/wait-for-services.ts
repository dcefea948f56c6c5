import { setTimeout as sleep } from "node:timers/promises";
import { ProblemError } from "../../problems.ts";
import { type Report, type ServiceOutcome, unchangedOutcome } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { type Judgement, judgeService, nothingSeen, type Observation, observe } from "./judge-service.ts";
import type { StackService } from "./stack.ts";
import { type Snapshot, type Task, type TaskState, takeSnapshot, taskName, tasksOf } from "./task.ts";
import { updateFailure } from "./update-failure.ts";

const pollMs = 200;

type Reached = Extract<Judgement, { readonly kind: "unchanged" | "started" | "updated" }>["kind"];

/**
 * Waits until Swarm has brought each of `services` to its new state, and reports the progress of each task.
 *
 * @param before the stack just before the deploy
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not update in time
 */
export async function waitForServices(
  rollout: StackRollout,
  services: readonly StackService[],
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  const startedMs = performance.now();
  const reportTasks = createTaskReport(rollout.report, before.tasks);
  const seen = new Map<string, Observation>();
  const reached = new Map<string, ServiceOutcome>();
  for (;;) {
    const now = await takeSnapshot(rollout.engine, rollout.project.name);
    const look = { before, now, atMs: performance.now() - startedMs };
    for (const service of services) {
      reportTasks(service.name, tasksOf(now, service.name));
      if (reached.has(service.name)) continue;
      const outcome = await outcomeNow(rollout, service, look, seen);
      if (outcome) reached.set(service.name, outcome);
    }
    if (reached.size === services.length) return [...reached.values()];
    await sleep(pollMs, undefined, { signal: rollout.signal });
  }
}

/** The stack before the deploy, and `atMs` after it. */
interface Look {
  readonly before: Snapshot;
  readonly now: Snapshot;
  readonly atMs: number;
}

/** Null while Swarm still works on the service. */
async function outcomeNow(
  rollout: StackRollout,
  service: StackService,
  look: Look,
  seen: Map<string, Observation>,
): Promise<ServiceOutcome | null> {
  const { before, now, atMs } = look;
  const present = now.services.get(service.name);
  if (!present) {
    const detail = `The service ${service.name} was removed meanwhile.`;
    throw new ProblemError({ code: "container_not_healthy", detail });
  }
  if (present.isJob) return outcomeOf(service, "unchanged", look, nothingSeen);
  const freshTasks = tasksOf(now, service.name, before);
  const observation = observe(seen.get(service.name) ?? nothingSeen, present, freshTasks, atMs);
  seen.set(service.name, observation);
  const judgement = judgeService({
    before: before.services.get(service.name) ?? null,
    now: present,
    freshTasks,
    steadyMs: observation.steadySinceMs === null ? 0 : atMs - observation.steadySinceMs,
    sinceDeployMs: atMs,
    hasHealthCheck: service.hasHealthCheck,
    mayEnd: service.mayEnd,
  });
  switch (judgement.kind) {
    case "unchanged":
    case "started":
    case "updated":
      return outcomeOf(service, judgement.kind, look, observation);
    case "pending":
      if (atMs <= allowedMs(service, present.update?.state)) return null;
      throw await updateFailure(rollout, service, { kind: "late", waitedMs: atMs }, freshTasks);
    default:
      throw await updateFailure(rollout, service, judgement, freshTasks);
  }
}

/** A roll back by Swarm gets as much time again: the reason of the failure is known when it ends. */
function allowedMs({ update }: StackService, state: string | undefined): number {
  return state === "rollback_started" ? 2 * update.timeoutMs : update.timeoutMs;
}

function outcomeOf(
  service: StackService,
  kind: Reached,
  { before, now }: Look,
  { healthyAfterMs, downtimeMs }: Observation,
): ServiceOutcome {
  const names = (snapshot: Snapshot, earlier: Snapshot | null) =>
    tasksOf(snapshot, service.name, earlier)
      .filter(({ state, isWanted }) => state === "running" && isWanted)
      .map((task) => taskName(service.name, task))
      .sort();
  if (kind === "unchanged") {
    return unchangedOutcome(
      service,
      names(now, null).map((name) => ({ name })),
    );
  }
  const wasServing = (before.services.get(service.name)?.runningTasks ?? 0) > 0;
  const isRolled = service.update.order === "start-first";
  return {
    service: service.name,
    outcome: kind === "started" ? "started" : isRolled ? "rolled" : "recreated",
    old: names(before, null),
    new: names(now, before),
    healthyAfterMs: healthyAfterMs === null ? null : Math.round(healthyAfterMs),
    drainedMs: null,
    downtimeMs: wasServing ? Math.round(downtimeMs) : null,
    reason: isRolled ? seenOf(wasServing, downtimeMs) : (reasonOf(service) ?? "order: stop-first"),
  };
}

/** Tasks are observed, requests are not. */
function seenOf(wasServing: boolean, downtimeMs: number): string | null {
  if (!wasServing) return null;
  return downtimeMs === 0 ? "a task ran at each look" : "no task ran";
}

function reasonOf({ replacement }: StackService): string | null {
  return replacement.how === "recreate" ? replacement.reason : null;
}

/** The other states pass within milliseconds, unless there is an error to report. */
const reportedStates: ReadonlySet<TaskState> = new Set<TaskState>([
  "preparing",
  "starting",
  "running",
  "shutdown",
  "complete",
  "failed",
  "rejected",
]);

/** Makes a function that reports each change of a task once. `known` are the tasks as they were before. */
export function createTaskReport(report: Report, known: readonly Task[]) {
  const reported = new Map(known.map((task) => [task.id, stateOf(task)]));
  return (service: string, tasks: readonly Task[]): void => {
    for (const task of tasks) {
      const text = stateOf(task);
      if (reported.get(task.id) === text || !(reportedStates.has(task.state) || task.error)) continue;
      reported.set(task.id, text);
      report({ event: "note", service, text: `${taskName(service, task)} ${text}` });
    }
  };
}

function stateOf({ state, error }: Task): string {
  return error === "" ? state : `${state}: ${error}`;
}
