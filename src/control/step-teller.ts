import type { Deployment } from "../deployments/deployment.ts";
import { listSteps } from "../deployments/progress.ts";
import type { Store } from "../deployments/store.ts";
import { stepJson } from "./deployment-json.ts";
import type { ControlEvent } from "./teller.ts";

/** Tells each step of a deployment twice at most: when it has begun, and when it is over. */
export interface StepTeller {
  /** Tells what is known now and was not told; of the first `count` steps only, where that is given. */
  readonly tellAll: (deployment: Deployment, count?: number) => void;
}

export function createStepTeller(store: Store, tell: (event: ControlEvent) => void): StepTeller {
  let begun = 0;
  const ended = new Set<number>();
  return {
    tellAll(deployment, count = Number.POSITIVE_INFINITY) {
      listSteps(store, deployment)
        .slice(0, count)
        .forEach((step, index) => {
          const isNew = index >= begun;
          if (isNew) begun += 1;
          if (isNew) tell({ event: "step", step: { ...stepJson(step), durationMs: null } });
          // The end of the last one asked for comes with the beginning of the next.
          if (step.endedAtMs === null || ended.has(index) || index + 1 >= count) return;
          ended.add(index);
          tell({ event: "step", step: stepJson(step) });
        });
    },
  };
}
