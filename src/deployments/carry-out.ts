import { formatDuration } from "../config/duration.ts";
import type { Log } from "../log.ts";
import { askToCancel, cancelGraceMs, cancelQueued } from "./cancel.ts";
import { putBack } from "./claim.ts";
import type { Deployment, Ending, Run, Runner } from "./deployment.ts";
import { logEnding, logStart } from "./deployment-log.ts";
import { pause } from "./pause.ts";
import type { Persist } from "./persist.ts";
import { recordEnding } from "./record-ending.ts";
import { pruneHistory } from "./retention.ts";
import type { Store } from "./store.ts";

/** Carries out one deployment at a time; that it is one, its caller sees to. */
export interface Carrier {
  /** Starts the script of a claimed deployment, and resolves when its ending is recorded. */
  readonly carryOut: (deployment: Deployment) => Promise<void>;
  /** The same for one whose script runs already. */
  readonly seeThrough: (deployment: Deployment, run: Run) => Promise<void>;
  readonly conclude: (deployment: Deployment, ending: Ending) => Promise<void>;
  /** @returns false where it is not the one at hand */
  readonly cancel: (deploymentId: number) => boolean;
  /** Ends the script at hand, and any that comes to hand, for the next service to run again. */
  readonly interrupt: () => void;
  /** Nothing is at hand any more. */
  readonly release: () => void;
}

export interface CarrierOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly persist: Persist;
  readonly onChange: (deploymentId: number) => void;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

const firstStartRetryMs = 1_000;
const longestStartRetryMs = 60_000;
/** How long an interrupted script may take to end by itself before it is forced to. */
const interruptGraceMs = 2_000;

export function createCarrier({ store, runner, persist, onChange, log, stopping }: CarrierOptions): Carrier {
  let run: Run | null = null;
  let current: number | null = null;
  let cancelled: number | null = null;
  let isInterrupting = false;
  let startRetryMs = firstStartRetryMs;

  async function carryOut(deployment: Deployment): Promise<void> {
    current = deployment.id;
    onChange(deployment.id);
    const start = await runner.start(deployment);
    switch (start.kind) {
      case "started":
        logStart(log, deployment);
        return await seeThrough(deployment, start.run);
      case "refused":
        return await conclude(deployment, { state: "failed", exitCode: null, problem: start.problem });
      case "try-again":
        return await tryLater(deployment, start.detail);
    }
  }

  async function seeThrough(deployment: Deployment, started: Run): Promise<void> {
    run = started;
    current = deployment.id;
    if (cancelled === deployment.id) run.end("cancelled", cancelGraceMs);
    if (isInterrupting) run.end("interrupted", interruptGraceMs);
    const ending = await run.ended;
    if (ending.state === "not_started") return await tryLater(deployment, ending.detail);
    startRetryMs = firstStartRetryMs;
    await conclude(deployment, ending);
  }

  async function tryLater(deployment: Deployment, detail: string): Promise<void> {
    const fields = { event: "deployment.not_started", deployment: deployment.id };
    log.warn(fields, `${detail} Trying again in ${formatDuration(startRetryMs)}.`);
    runner.tidy(deployment.id);
    await persist(() => {
      putBack(store, deployment);
      if (cancelled === deployment.id) cancelQueued(store, deployment.id);
    });
    current = null;
    onChange(deployment.id);
    await pause(startRetryMs, stopping);
    startRetryMs = Math.min(2 * startRetryMs, longestStartRetryMs);
  }

  async function conclude(deployment: Deployment, ending: Ending): Promise<void> {
    const recorded = await persist(() => {
      const how = { isCancelled: cancelled === deployment.id, doesResume: !stopping.aborted };
      return recordEnding(store, deployment, ending, how);
    });
    // Who cancels it from now on finds it in the queue, if at all.
    current = null;
    logEnding(log, deployment, recorded ?? ending);
    onChange(deployment.id);
    runner.tidy(deployment.id);
    await persist(() => pruneHistory(store));
  }

  return {
    carryOut,
    seeThrough,
    conclude,
    cancel(id) {
      if (current !== id) return false;
      askToCancel(store, id, log);
      cancelled = id;
      run?.end("cancelled", cancelGraceMs);
      return true;
    },
    interrupt() {
      isInterrupting = true;
      run?.end("interrupted", interruptGraceMs);
    },
    release() {
      run = null;
      current = null;
      cancelled = null;
    },
  };
}
