import { setTimeout as sleep } from "node:timers/promises";
import { inspectContainer } from "../../platform/docker/container.ts";
import { evidenceOf } from "../../platform/docker/diagnosis.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { ProblemError } from "../../problems.ts";
import { outcomeOf, type Report, type ServiceOutcome, unchangedOutcome } from "../report/report.ts";
import { freshTasks, type Judgement, judgeService, type Observation, observe } from "./judge-service.ts";
import type { StackRollout, StackService } from "./stack.ts";
import { hasFailed, readStackState, type StackState, type SwarmService, type Task } from "./swarm-service.ts";

const pollMs = 200;

/**
 * Waits until Swarm has brought each of `services` to its new state, and reports the progress of each task.
 *
 * @param before the stack just before the deploy
 * @throws ProblemError `container_not_healthy` at the first service that Swarm rolled back, paused or did not update in time
 */
export async function waitForServices(
  { engine, project, report, signal }: StackRollout,
  services: readonly StackService[],
  before: StackState,
): Promise<readonly ServiceOutcome[]> {
  const startedMs = performance.now();
  const reportTasks = createTaskReport(report, before);
  const seen = new Map<string, Observation>();
  const reached = new Map<string, ServiceOutcome>();
  for (;;) {
    const state = await readStackState(engine, project.name);
    const atMs = performance.now() - startedMs;
    for (const service of services) {
      const { name } = service;
      const now = present(state, name);
      reportTasks(now);
      const observation = observe({ before: before.get(name) ?? null, now, atMs }, seen.get(name));
      seen.set(name, observation);
      const outcome = reached.get(name) ?? (await outcomeNow(engine, service, observation));
      if (outcome) reached.set(name, outcome);
    }
    if (reached.size === services.length) return [...reached.values()];
    await sleep(pollMs, undefined, { signal });
  }
}

function present(state: StackState, name: string): SwarmService {
  const now = state.get(name);
  if (now) return now;
  const detail = `The service ${name} was removed meanwhile.`;
  throw new ProblemError({ code: "container_not_healthy", detail });
}

/** Null while Swarm still works on the service. */
async function outcomeNow(
  engine: Engine,
  service: StackService,
  seen: Observation,
): Promise<ServiceOutcome | null> {
  const judgement = judgeService(service, seen);
  if (typeof judgement === "object") throw await updateFailure(engine, judgement.failure, seen);
  return judgement === "pending" ? null : outcomeFor(service, judgement, seen);
}

/** The other states pass within milliseconds, unless there is an error to report. */
const reportedStates: readonly string[] = [
  ...["preparing", "starting", "running"],
  ...["shutdown", "complete", "failed", "rejected"],
];

/** Makes a function that reports each change of a service's tasks once, compared with those in `before`. */
export function createTaskReport(report: Report, before: StackState) {
  const known = [...before.values()].flatMap(({ tasks }) => tasks);
  const reported = new Map(known.map((task) => [task.id, stateOf(task)]));
  return ({ name, tasks }: Pick<SwarmService, "name" | "tasks">): void => {
    for (const task of tasks) {
      const text = stateOf(task);
      if (reported.get(task.id) === text || !(reportedStates.includes(task.state) || task.error)) continue;
      reported.set(task.id, text);
      report({ event: "note", service: name, text: `${task.name} ${text}` });
    }
  };
}

function stateOf({ state, error }: Task): string {
  return error === "" ? state : `${state}: ${error}`;
}

function outcomeFor(
  service: StackService,
  judgement: Exclude<Judgement, "pending" | object>,
  { before, now, healthyAfterMs, downtimeMs }: Observation,
): ServiceOutcome {
  if (judgement === "unchanged") return unchangedOutcome(service, runningTasks(now));
  const wasServing = before !== null && before.runningTasks > 0;
  const isRolled = service.update.order === "start-first";
  const old = runningTasks(before);
  const fresh = runningTasks({ tasks: freshTasks({ before, now }) });
  const outcome = judgement === "started" ? "started" : isRolled ? "rolled" : "recreated";
  return outcomeOf(
    service,
    outcome,
    { old, new: fresh },
    {
      healthyAfterMs: healthyAfterMs === null ? null : Math.round(healthyAfterMs),
      downtimeMs: wasServing ? Math.round(downtimeMs) : null,
      reason: isRolled ? seenOf(wasServing, downtimeMs) : reasonOf(service),
    },
  );
}

/** The tasks that run and are to stay, sorted by their names. */
export function runningTasks(service: Pick<SwarmService, "tasks"> | null | undefined): readonly Task[] {
  const running = service?.tasks.filter(({ state, isWanted }) => state === "running" && isWanted) ?? [];
  return running.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Tasks are observed, requests are not. */
function seenOf(wasServing: boolean, downtimeMs: number): string | null {
  if (!wasServing) return null;
  return downtimeMs === 0 ? "a task ran at each look" : "no task ran";
}

function reasonOf({ replacement }: StackService): string {
  return replacement.how === "recreate" ? replacement.reason : "order: stop-first";
}

/** The error of a service that failed, with the failing task's error, health output and last log lines. */
export async function updateFailure(
  engine: Engine,
  failure: string,
  seen: Pick<Observation, "before" | "now">,
): Promise<ProblemError> {
  const fresh = freshTasks(seen);
  const task =
    fresh.findLast(hasFailed) ?? fresh.findLast(({ state, isWanted }) => isWanted && state !== "running");
  const code = "container_not_healthy";
  if (task === undefined) return new ProblemError({ code, detail: failure });
  const evidence = await evidenceOfTask(engine, task);
  return new ProblemError({ code, detail: `${failure} Task ${task.name} ${failureOf(task)}.`, evidence });
}

function failureOf(task: Task): string {
  const state = hasFailed(task) ? "failed" : `is ${task.state}`;
  // Swarm has no error for a container that was stopped as unhealthy and then exited with 0.
  const error = task.error || (task.state === "complete" ? "it ended, or was stopped as unhealthy" : "");
  return error === "" ? state : `${state}: ${error}`;
}

async function evidenceOfTask(engine: Engine, task: Task): Promise<readonly string[]> {
  const { id, containerId, environment } = task;
  if (containerId === null) return [];
  // The container can only be inspected on its own node; its logs come from any.
  const container = await inspectContainer(engine, containerId);
  const known = container ?? { environment, mounts: [], healthLog: [] };
  return evidenceOf(engine, known, [`/containers/${containerId}`, `/tasks/${id}`]);
}
