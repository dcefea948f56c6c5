import { keepTrying } from "#platform/async";
import { isShortage } from "#platform/run-command";
import { type Deployment, type Ending, selectDeployments } from "./deployment.ts";
import {
  cancelGraceMs,
  cancelledEnding,
  type Executor,
  type ExecutorOptions,
  isCancelRequested,
  resume,
} from "./execute.ts";
import { transition } from "./states.ts";

export interface RecoveryOptions
  extends Pick<ExecutorOptions, "store" | "runner" | "persist" | "log" | "stopping"> {
  readonly executor: Pick<Executor, "watch" | "conclude">;
}

/**
 * Recovers what an earlier service left behind, oldest first. A script that still runs is adopted, one that has ended is
 * recorded as it ended, and one that is gone was interrupted and runs again, three times at most. A deployment that was
 * being cancelled is cancelled in each case.
 */
export async function recover(options: RecoveryOptions): Promise<void> {
  const unfinished = "WHERE project = $project AND state IN ('running', 'interrupted') ORDER BY queue_order";
  for (const deployment of selectDeployments(options.store, unfinished)) {
    if (deployment.state === "interrupted") await runAgain(deployment, options);
    else await recoverRunning(deployment, options);
  }
}

async function recoverRunning(deployment: Deployment, options: RecoveryOptions): Promise<void> {
  const { runner, log, stopping: signal, store, executor } = options;
  const fields = { deployment: deployment.id, ref: deployment.ref, commit: deployment.commit };
  const what = `It is not known yet whether the script of deployment ${deployment.id} still runs`;
  const adopt = () => runner.adopt(deployment);
  const adoption = await keepTrying(adopt, { what, canPass: isShortage, signal, log });
  const isUnwanted = isCancelRequested(store, deployment.id);
  switch (adoption?.kind) {
    case "alive":
      log.warn(
        { event: "deployment.adopted", ...fields },
        "A deploy script outlived its service and is adopted",
      );
      if (isUnwanted) adoption.run.end("cancelled", cancelGraceMs);
      return await executor.watch(deployment, adoption.run);
    case "ended":
      log.warn(
        { event: "deployment.ended_unwatched", ...fields },
        "A deploy script ended while no service ran",
      );
      return await executor.conclude(deployment, isUnwanted ? afterCancel(adoption.ending) : adoption.ending);
    case "gone":
      if (isUnwanted) return await executor.conclude(deployment, cancelledEnding);
      await runAgain(deployment, options);
  }
}

/** A script that was asked to end and failed was cancelled. One that succeeded had done its work by then. */
function afterCancel(ending: Ending): Ending {
  return ending.state === "succeeded" ? ending : cancelledEnding;
}

/** In one transaction: another instance may record a newer push, which supersedes an interrupted one. */
async function runAgain(
  deployment: Deployment,
  { store, runner, log, persist }: RecoveryOptions,
): Promise<void> {
  runner.tidy(deployment.id);
  const state = await persist(() => {
    if (deployment.state === "running") transition(store, deployment, "interrupted");
    return resume(store, deployment.id);
  });
  if (state === null) return;
  const fields = { deployment: deployment.id, attempts: deployment.attempts, state };
  log.warn({ event: "deployment.interrupted", ...fields }, `An interrupted deployment is ${state} now`);
}
