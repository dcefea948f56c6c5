import type { Log } from "../log.ts";
import { isShortage } from "../platform/shortage.ts";
import { cancelGraceMs, cancelledEnding, isCancelAsked } from "./cancel.ts";
import { findUnfinished } from "./claim.ts";
import type { Deployment, Ending, Run, Runner } from "./deployment.ts";
import { keepTrying } from "./keep-trying.ts";
import { move } from "./move.ts";
import type { Persist } from "./persist.ts";
import { resume } from "./settle.ts";
import type { Store } from "./store.ts";

export interface RecoveryOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly persist: Persist;
  readonly seeThrough: (deployment: Deployment, run: Run) => Promise<void>;
  readonly conclude: (deployment: Deployment, ending: Ending) => Promise<void>;
}

/**
 * Deals with what an earlier service left behind: a script that still runs is adopted and seen through, one that ended
 * meanwhile is recorded as it ended, and one that is gone was interrupted and runs again, three times at most. What was
 * being cancelled is cancelled, whatever became of its service.
 */
export async function recover(options: RecoveryOptions): Promise<void> {
  for (const deployment of findUnfinished(options.store)) {
    if (deployment.state === "interrupted") await runAgain(deployment, options);
    else await recoverRunning(deployment, options);
  }
}

async function recoverRunning(deployment: Deployment, options: RecoveryOptions): Promise<void> {
  const { runner, log, signal, store } = options;
  const fields = { deployment: deployment.id, ref: deployment.ref, commit: deployment.commit };
  const what = `It is not known yet whether the script of deployment ${deployment.id} still runs`;
  const adoption = await keepTrying(() => runner.adopt(deployment), {
    what,
    canHeal: isShortage,
    signal,
    log,
  });
  const isUnwanted = isCancelAsked(store, deployment.id);
  switch (adoption?.kind) {
    case "alive":
      log.warn(
        { event: "deployment.adopted", ...fields },
        "A deploy script outlived its service and is adopted",
      );
      if (isUnwanted) adoption.run.end("cancelled", cancelGraceMs);
      return await options.seeThrough(deployment, adoption.run);
    case "ended":
      log.warn(
        { event: "deployment.ended_unwatched", ...fields },
        "A deploy script ended while no service ran",
      );
      return await options.conclude(deployment, isUnwanted ? afterCancel(adoption.ending) : adoption.ending);
    case "gone":
      if (isUnwanted) return await options.conclude(deployment, cancelledEnding);
      await runAgain(deployment, options);
  }
}

/** A script that was asked to end and fails did as it was asked; one that succeeded had done its work by then. */
function afterCancel(ending: Ending): Ending {
  return ending.state === "succeeded" ? ending : cancelledEnding;
}

/** In one transaction: another instance may record a newer push, which takes the place of an interrupted one. */
async function runAgain(
  deployment: Deployment,
  { store, runner, log, persist }: RecoveryOptions,
): Promise<void> {
  runner.tidy(deployment.id);
  const state = await persist(() => {
    if (deployment.state === "running") move(store, deployment, "interrupted");
    return resume(store, deployment.id);
  });
  if (state === null) return;
  const fields = { deployment: deployment.id, attempts: deployment.attempts, state };
  log.warn({ event: "deployment.interrupted", ...fields }, `An interrupted deployment is ${state} now`);
}
