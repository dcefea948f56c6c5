import type { ServerResponse } from "node:http";
import type { Deployment } from "../deployments/deployment.ts";
import { listSteps } from "../deployments/progress.ts";
import type { Store } from "../deployments/store.ts";
import { type DeploymentJson, type StepJson, stepJson } from "./deployment-json.ts";

/** What a follower of a deployment receives: one JSON object per line; docs/cli.md has each. */
export type ControlEvent =
  | { readonly event: "deployment"; readonly deployment: DeploymentJson }
  | { readonly event: "line"; readonly line: string }
  /** A step began; the same again with `durationMs` when it is over. */
  | { readonly event: "step"; readonly step: StepJson }
  /** So many lines were left out, because the reader was too slow; the log has them. */
  | { readonly event: "skipped"; readonly lines: number };

/** Writes events to one reader. If it is slow, lines are left out and counted; no other event is left out. */
export interface EventWriter {
  readonly write: (event: ControlEvent) => void;
  readonly end: () => void;
}

const mostWaitingBytes = 1024 ** 2;

export function createEventWriter(response: ServerResponse): EventWriter {
  let skipped = 0;

  function writeLine(event: ControlEvent): void {
    if (!response.destroyed) response.write(`${JSON.stringify(event)}\n`);
  }

  function writeSkipped(): void {
    if (skipped > 0) writeLine({ event: "skipped", lines: skipped });
    skipped = 0;
  }

  return {
    write(event) {
      if (event.event === "line" && response.writableLength > mostWaitingBytes) {
        skipped += 1;
        return;
      }
      writeSkipped();
      writeLine(event);
    },
    end() {
      writeSkipped();
      response.end();
    },
  };
}

/** Writes the steps of a deployment that are known now, or only the first `count` of them, each not written before. */
export type StepWriter = (deployment: Deployment, count?: number) => void;

/** Makes a writer that writes each step at most twice: when it has begun, and when it is over. */
export function createStepWriter(store: Store, { write }: EventWriter): StepWriter {
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
