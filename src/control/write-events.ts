import type { ServerResponse } from "node:http";
import type { Deployment } from "../deployments/deployment.ts";
import { listSteps } from "../deployments/steps.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { type ControlEvent, stepJson } from "./deployment-json.ts";

export type WriteEvent = (event: ControlEvent) => void;

const mostWaitingBytes = 1024 ** 2;

/** Writes events to one reader. If it is slow, lines are left out and counted; no other event is left out. */
export function createEventWriter(response: ServerResponse): WriteEvent {
  let skipped = 0;
  const writeNow = (event: ControlEvent) => {
    if (!response.destroyed) response.write(`${JSON.stringify(event)}\n`);
  };
  return (event) => {
    if (event.event === "line" && response.writableLength > mostWaitingBytes) {
      skipped += 1;
      return;
    }
    if (skipped > 0) writeNow({ event: "skipped", lines: skipped });
    skipped = 0;
    writeNow(event);
  };
}

/** Writes the steps of a deployment that are known now, or only the first `count` of them, each not written before. */
export type StepWriter = (deployment: Deployment, count?: number) => void;

/** Makes a writer that writes each step at most twice: when it has begun, and when it is over. */
export function createStepWriter(store: Store, write: WriteEvent): StepWriter {
  let begun = 0;
  const ended = new Set<number>();
  return (deployment, count = Number.POSITIVE_INFINITY) => {
    for (const [index, step] of listSteps(store, deployment).slice(0, count).entries()) {
      if (index >= begun) {
        begun += 1;
        write({ event: "step", step: { ...stepJson(step), durationMs: null } });
      }
      // The end of the last one requested comes with the beginning of the next.
      if (step.endedAtMs === null || ended.has(index) || index + 1 >= count) continue;
      ended.add(index);
      write({ event: "step", step: stepJson(step) });
    }
  };
}
