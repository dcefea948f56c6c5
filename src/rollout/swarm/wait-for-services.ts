import { setTimeout as sleep } from "node:timers/promises";
import { ProblemError } from "../../problems.ts";
import { type ServiceOutcome, unchanged } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import { failureOf } from "./failure.ts";
import { type Judgement, judge } from "./judge.ts";
import { nothingSeen, type Observation, observe } from "./observation.ts";
import { tellProgress } from "./progress.ts";
import { type Snapshot, takeSnapshot, tasksOf } from "./snapshot.ts";
import type { StackService } from "./stack.ts";
import { taskName } from "./task.ts";

const pollMs = 200;

type Settled = Extract<Judgement, { readonly kind: "unchanged" | "started" | "updated" }>["kind"];

/**
 * Waits until Swarm has brought each of `services` to its new state, telling what becomes of each task.
 *
 * @param before the stack just before the deploy
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not get done in time
 */
export async function waitForServices(
  rollout: StackRollout,
  services: readonly StackService[],
  before: Snapshot,
): Promise<readonly ServiceOutcome[]> {
  const startedMs = performance.now();
  const tell = tellProgress(rollout.report, before.tasks);
  const seen = new Map<string, Observation>();
  const settled = new Map<string, ServiceOutcome>();
  for (;;) {
    const now = await takeSnapshot(rollout.engine, rollout.project.name);
    const atMs = performance.now() - startedMs;
    for (const service of services) {
      tell(service.name, tasksOf(now, service.name));
      if (settled.has(service.name)) continue;
      const outcome = await look(rollout, service, before, now, seen, atMs);
      if (outcome) settled.set(service.name, outcome);
    }
    if (settled.size === services.length) return [...settled.values()];
    await sleep(pollMs, undefined, { signal: rollout.signal });
  }
}

async function look(
  rollout: StackRollout,
  service: StackService,
  before: Snapshot,
  now: Snapshot,
  seen: Map<string, Observation>,
  atMs: number,
): Promise<ServiceOutcome | null> {
  const present = now.services.get(service.name);
  if (!present)
    throw new ProblemError({
      code: "container_not_healthy",
      detail: `The service ${service.name} was removed meanwhile.`,
    });
  if (present.isJob) return outcomeOf(service, "unchanged", before, now, nothingSeen);
  const freshTasks = tasksOf(now, service.name, before);
  const observation = observe(seen.get(service.name) ?? nothingSeen, present, freshTasks, atMs);
  seen.set(service.name, observation);
  const judgement = judge({
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
      return outcomeOf(service, judgement.kind, before, now, observation);
    case "pending":
      if (atMs <= allowedMs(service, present.update?.state)) return null;
      throw await failureOf(rollout, service, { kind: "late", waitedMs: atMs }, freshTasks);
    default:
      throw await failureOf(rollout, service, judgement, freshTasks);
  }
}

/** While Swarm goes back by itself, it is left as much time for that: its end has the reason. */
function allowedMs({ update }: StackService, state: string | undefined): number {
  return state === "rollback_started" ? 2 * update.timeoutMs : update.timeoutMs;
}

function outcomeOf(
  service: StackService,
  kind: Settled,
  before: Snapshot,
  now: Snapshot,
  { healthyAfterMs, downtimeMs }: Observation,
): ServiceOutcome {
  const names = (snapshot: Snapshot, earlier: Snapshot | null) =>
    tasksOf(snapshot, service.name, earlier)
      .filter(({ state, isWanted }) => state === "running" && isWanted)
      .map((task) => taskName(service.name, task))
      .sort();
  if (kind === "unchanged") {
    return unchanged(
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

/** Tasks are looked at, requests are not. */
function seenOf(wasServing: boolean, downtimeMs: number): string | null {
  if (!wasServing) return null;
  return downtimeMs === 0 ? "a task ran at each look" : "no task ran";
}

function reasonOf({ replacement }: StackService): string | null {
  return replacement.how === "recreate" ? replacement.reason : null;
}
