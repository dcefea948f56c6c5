import { formatDuration } from "../../config/duration.ts";
import { inspectContainer } from "../../platform/docker/container.ts";
import { evidenceOf, plainLog, shownLogLines, withoutSecrets } from "../../platform/docker/diagnosis.ts";
import type { Engine } from "../../platform/docker/engine.ts";
import { ProblemError } from "../../problems.ts";
import type { StackRollout } from "./context.ts";
import type { Judgement } from "./judge-service.ts";
import type { StackService } from "./stack.ts";
import { hasFailed, type Task, taskName } from "./task.ts";

export type UpdateFailure =
  | Extract<Judgement, { readonly kind: "rolled_back" | "paused" | "start_failed" }>
  | { readonly kind: "late"; readonly waitedMs: number };

/** Why a service did not reach its new state, with the failing task's error, health output and last log lines. */
export async function updateFailure(
  { engine }: StackRollout,
  service: StackService,
  failure: UpdateFailure,
  freshTasks: readonly Task[],
): Promise<ProblemError> {
  const task =
    freshTasks.findLast(hasFailed) ??
    freshTasks.findLast(({ state, isWanted }) => isWanted && state !== "running");
  const text = `${textOf(service.name, failure)}${task ? ` ${taskText(service.name, task)}.` : ""}`;
  return new ProblemError({
    code: "container_not_healthy",
    detail: text,
    evidence: task ? await evidenceOfTask(engine, task) : [],
  });
}

function textOf(name: string, failure: UpdateFailure): string {
  switch (failure.kind) {
    case "rolled_back":
      return `The new version of ${name} failed, and Swarm went back to the old one (${failure.message}).`;
    case "paused":
      return `Swarm paused the update of ${name} (${failure.message}).`;
    case "start_failed":
      return `${name} could not be started.`;
    case "late":
      return `The update of ${name} was not done after ${formatDuration(failure.waitedMs)}.`;
  }
}

function taskText(service: string, task: Task): string {
  const state = hasFailed(task) ? "failed" : `is ${task.state}`;
  // Swarm has no error for a container that was stopped as unhealthy and then exited with 0.
  const error = task.error || (task.state === "complete" ? "it ended, or was stopped as unhealthy" : "");
  return `Task ${taskName(service, task)} ${state}${error === "" ? "" : `: ${error}`}`;
}

async function evidenceOfTask(engine: Engine, task: Task): Promise<readonly string[]> {
  // The container can only be inspected on its own node; its logs come from any.
  const container = task.containerId === null ? null : await inspectContainer(engine, task.containerId);
  const known = container ?? { environment: task.environment, mounts: [], healthLog: [] };
  const lines = withoutSecrets(known, (await lastTaskLogLines(engine, task)).join("\n"));
  return evidenceOf(known, lines.split("\n").filter(Boolean));
}

async function lastTaskLogLines(engine: Engine, { id, containerId }: Task): Promise<readonly string[]> {
  const query = `stdout=1&stderr=1&tail=${shownLogLines}`;
  const sources = [`/containers/${containerId}/logs?${query}`, `/tasks/${id}/logs?${query}`];
  for (const source of containerId === null ? [] : sources) {
    // Logs explain a failure: missing logs must not hide it.
    const raw = await engine.get(source).catch(() => null);
    if (raw) return plainLog(raw).split("\n").filter(Boolean).slice(-shownLogLines);
  }
  return [];
}
