import { formatDuration } from "../config/duration.ts";
import type { Log } from "../log.ts";
import { askToCancel, cancelGraceMs, cancelQueued } from "./cancel.ts";
import { putBack } from "./claim.ts";
import type { Deployment, Ending, Run, Runner, Source } from "./deployment.ts";
import { logEnding, logStart } from "./deployment-log.ts";
import { pause } from "./pause.ts";
import type { Persist } from "./persist.ts";
import { recordEnding } from "./record-ending.ts";
import { pruneHistory } from "./retention.ts";
import { type ReadSource, recordSource } from "./source.ts";
import type { Store } from "./store.ts";

/** Carries out one deployment at a time; that it is one, its caller sees to. */
export interface Carrier {
  /** Starts the script of a claimed deployment, and resolves when its ending is recorded. */
  readonly carryOut: (deployment: Deployment) => Promise<void>;
  /** The same for one whose script runs already. */
  readonly seeThrough: (deployment: Deployment, run: Run) => Promise<void>;
  readonly conclude: (deployment: Deployment, ending: Ending) => Promise<void>;
  /** @returns false where it is not the one at hand */
  readonly cancel: (deploymentId: number, by: string | null) => boolean;
  /** Ends the script at hand, and any that comes to hand, for the next service to run again. */
  readonly interrupt: () => void;
  /** Nothing is at hand any more. */
  readonly release: () => void;
}

export interface CarrierOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly persist: Persist;
  readonly readSource: ReadSource;
  readonly onChange: (deploymentId: number) => void;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

const firstStartRetryMs = 1_000;
const longestStartRetryMs = 60_000;
/** How long an interrupted script may take to end by itself before it is forced to. */
const interruptGraceMs = 2_000;

/** What is at hand, if anything, and what was asked of it. */
interface AtHand extends CarrierOptions {
  run: Run | null;
  current: number | null;
  cancelled: number | null;
  isInterrupting: boolean;
  startRetryMs: number;
}

/** Makes the one that takes a deployment from its start to its recorded ending. */
export function createCarrier(options: CarrierOptions): Carrier {
  const nothing = { run: null, current: null, cancelled: null };
  const at: AtHand = { ...options, ...nothing, isInterrupting: false, startRetryMs: firstStartRetryMs };
  return {
    carryOut: (deployment) => carryOut(at, deployment),
    seeThrough: (deployment, run) => seeThrough(at, deployment, run),
    conclude: (deployment, ending) => conclude(at, deployment, ending),
    cancel: (deploymentId, by) => cancel(at, deploymentId, by),
    interrupt() {
      at.isInterrupting = true;
      at.run?.end("interrupted", interruptGraceMs);
    },
    release() {
      Object.assign(at, nothing);
    },
  };
}

async function carryOut(at: AtHand, deployment: Deployment): Promise<void> {
  at.current = deployment.id;
  at.onChange(deployment.id);
  const start = await at.runner.start(deployment);
  switch (start.kind) {
    case "started":
      logStart(at.log, deployment);
      return await seeThrough(at, deployment, start.run);
    case "refused":
      return await record(at, deployment, { state: "failed", exitCode: null, problem: start.problem }, null);
    case "try-again":
      return await tryLater(at, deployment, start.detail);
  }
}

async function seeThrough(at: AtHand, deployment: Deployment, run: Run): Promise<void> {
  at.run = run;
  at.current = deployment.id;
  if (at.cancelled === deployment.id) run.end("cancelled", cancelGraceMs);
  if (at.isInterrupting) run.end("interrupted", interruptGraceMs);
  const ending = await run.ended;
  if (ending.state === "not_started") return await tryLater(at, deployment, ending.detail);
  at.startRetryMs = firstStartRetryMs;
  await conclude(at, deployment, ending);
}

async function tryLater(at: AtHand, deployment: Deployment, detail: string): Promise<void> {
  const { store, runner, persist, log } = at;
  const fields = { event: "deployment.not_started", deployment: deployment.id };
  log.warn(fields, `${detail} Trying again in ${formatDuration(at.startRetryMs)}.`);
  runner.tidy(deployment.id);
  await persist(() => {
    putBack(store, deployment);
    if (at.cancelled === deployment.id) cancelQueued(store, deployment.id, null);
  });
  at.current = null;
  at.onChange(deployment.id);
  await pause(at.startRetryMs, at.stopping);
  at.startRetryMs = Math.min(2 * at.startRetryMs, longestStartRetryMs);
}

/** Records how a run ended, and what it had checked out by then. */
async function conclude(at: AtHand, deployment: Deployment, ending: Ending): Promise<void> {
  const { state } = ending;
  // One that was interrupted runs again.
  const source = state === "interrupted" ? null : await at.readSource(deployment, state);
  await record(at, { ...deployment, ...source }, ending, source);
}

async function record(
  at: AtHand,
  deployment: Deployment,
  ending: Ending,
  source: Source | null,
): Promise<void> {
  const { store, runner, persist, stopping } = at;
  const recorded = await persist(() => {
    if (source !== null) recordSource(store, deployment, source);
    const how = { isCancelled: at.cancelled === deployment.id, doesResume: !stopping.aborted };
    return recordEnding(store, deployment, ending, how);
  });
  // Who cancels it from now on finds it in the queue, if at all.
  at.current = null;
  logEnding(at.log, deployment, recorded ?? ending);
  at.onChange(deployment.id);
  runner.tidy(deployment.id);
  await persist(() => pruneHistory(store));
}

function cancel(at: AtHand, deploymentId: number, by: string | null): boolean {
  if (at.current !== deploymentId) return false;
  askToCancel(at.store, deploymentId, by, at.log);
  at.cancelled = deploymentId;
  at.run?.end("cancelled", cancelGraceMs);
  return true;
}
