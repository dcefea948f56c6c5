import type { Report } from "../report/report.ts";
import { type Task, type TaskState, taskName } from "./task.ts";

/** The others pass within milliseconds, unless there is an error to tell. */
const toldStates: ReadonlySet<TaskState> = new Set([
  "preparing",
  "starting",
  "running",
  "shutdown",
  "complete",
  "failed",
  "rejected",
]);

/** Tells each change of a task once. `known` are the tasks as they were before. */
export function tellProgress(report: Report, known: readonly Task[]) {
  const told = new Map(known.map((task) => [task.id, toldOf(task)]));
  return (service: string, tasks: readonly Task[]): void => {
    for (const task of tasks) {
      const text = toldOf(task);
      if (told.get(task.id) === text || !(toldStates.has(task.state) || task.error)) continue;
      told.set(task.id, text);
      report({ event: "note", service, text: `${taskName(service, task)} ${text}` });
    }
  };
}

function toldOf({ state, error }: Task): string {
  return error === "" ? state : `${state}: ${error}`;
}
