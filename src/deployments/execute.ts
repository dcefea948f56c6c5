import { formatDuration } from "../config/duration.ts";
import type { Log } from "../log.ts";
import { cancelGraceMs, cancelQueued, requestCancel } from "./cancel.ts";
import {
  type Deployment,
  type Ending,
  liveCommit,
  type Run,
  type Runner,
  type Source,
} from "./deployment.ts";
import { putBack } from "./enqueue.ts";
import { pruneHistory } from "./history.ts";
import { type ReadSource, recordSource } from "./progress.ts";
import { type Persist, pause } from "./retry.ts";
import { settle } from "./settle.ts";
import type { Store } from "./store.ts";

/** Executes one deployment at a time. The caller makes sure that it is one. */
export interface Executor {
  /** Starts the script of a claimed deployment. Resolves when its ending is recorded. */
  readonly execute: (deployment: Deployment) => Promise<void>;
  /** Does the same for a deployment whose script runs already. */
  readonly watch: (deployment: Deployment, run: Run) => Promise<void>;
  /** Does the same for a deployment whose script has ended. */
  readonly conclude: (deployment: Deployment, ending: Ending) => Promise<void>;
  /** @returns false if it is not the current deployment */
  readonly cancel: (deploymentId: number, by: string | null) => boolean;
  /** Terminates the current script and any started later, so that the next service reruns them. */
  readonly interrupt: () => void;
  /** Forgets the current deployment. */
  readonly release: () => void;
}

export interface ExecutorOptions {
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
/** How long an interrupted script may take to end by itself before it is killed. */
const interruptGraceMs = 2_000;

interface ExecutorState extends ExecutorOptions {
  run: Run | null;
  /** The ids of the deployment that is executed, and of the one that was cancelled. */
  current: number | null;
  cancelled: number | null;
  isInterrupting: boolean;
  startRetryMs: number;
}

/** Makes the executor, which takes a deployment from its start to its recorded ending. */
export function createExecutor(options: ExecutorOptions): Executor {
  const none = { run: null, current: null, cancelled: null };
  const state: ExecutorState = {
    ...{ ...options, ...none, isInterrupting: false },
    startRetryMs: firstStartRetryMs,
  };
  return {
    execute: (deployment) => execute(state, deployment),
    watch: (deployment, run) => watch(state, deployment, run),
    conclude: (deployment, ending) => conclude(state, deployment, ending),
    cancel: (deploymentId, by) => cancel(state, deploymentId, by),
    interrupt() {
      state.isInterrupting = true;
      state.run?.end("interrupted", interruptGraceMs);
    },
    release() {
      Object.assign(state, none);
    },
  };
}

async function execute(state: ExecutorState, deployment: Deployment): Promise<void> {
  state.current = deployment.id;
  state.onChange(deployment.id);
  const start = await state.runner.start(deployment);
  switch (start.kind) {
    case "started":
      logStart(state.log, deployment);
      return await watch(state, deployment, start.run);
    case "refused":
      return await record(
        state,
        deployment,
        { state: "failed", exitCode: null, problem: start.problem },
        null,
      );
    case "try-again":
      return await retryLater(state, deployment, start.detail);
  }
}

function logStart(log: Log, { id, trigger, ref, commit, attempts }: Deployment): void {
  const fields = { event: "deployment.started", deployment: id, trigger, ref, commit, attempt: attempts };
  log.info(fields, `Deployment ${id} started: ${ref} at ${commit.slice(0, 7)}`);
}

async function watch(state: ExecutorState, deployment: Deployment, run: Run): Promise<void> {
  state.run = run;
  state.current = deployment.id;
  if (state.cancelled === deployment.id) run.end("cancelled", cancelGraceMs);
  if (state.isInterrupting) run.end("interrupted", interruptGraceMs);
  const ending = await run.ended;
  if (ending.state === "not_started") return await retryLater(state, deployment, ending.detail);
  state.startRetryMs = firstStartRetryMs;
  await conclude(state, deployment, ending);
}

async function retryLater(state: ExecutorState, deployment: Deployment, detail: string): Promise<void> {
  const { store, runner, persist, log } = state;
  const fields = { event: "deployment.not_started", deployment: deployment.id };
  log.warn(fields, `${detail} Trying again in ${formatDuration(state.startRetryMs)}.`);
  runner.tidy(deployment.id);
  await persist(() => {
    putBack(store, deployment);
    if (state.cancelled === deployment.id) cancelQueued(store, deployment.id, null);
  });
  state.current = null;
  state.onChange(deployment.id);
  await pause(state.startRetryMs, state.stopping);
  state.startRetryMs = Math.min(2 * state.startRetryMs, longestStartRetryMs);
}

/** Records how a run ended and what it has checked out, which an interrupted one has yet to do. */
async function conclude(state: ExecutorState, deployment: Deployment, ending: Ending): Promise<void> {
  const source = ending.state === "interrupted" ? null : await state.readSource(deployment, ending.state);
  await record(state, { ...deployment, ...source }, ending, source);
}

async function record(
  state: ExecutorState,
  deployment: Deployment,
  ending: Ending,
  source: Source | null,
): Promise<void> {
  const { store, runner, persist, stopping } = state;
  const recorded = await persist(() => {
    if (source !== null) recordSource(store, deployment, source);
    const isCancelled = state.cancelled === deployment.id;
    return settle(store, deployment, ending, { isCancelled, doesResume: !stopping.aborted });
  });
  // From now on a cancellation finds it in the queue, if anywhere.
  state.current = null;
  logEnding(state.log, deployment, recorded ?? ending);
  state.onChange(deployment.id);
  runner.tidy(deployment.id);
  await persist(() => pruneHistory(store));
}

function logEnding(log: Log, deployment: Deployment, { state, exitCode, problem }: Ending): void {
  const { id, ref, commit, checkedOutCommit } = deployment;
  const fields = {
    ...{ event: `deployment.${state}`, deployment: id, ref, commit, checkedOutCommit },
    ...{ exitCode, code: problem?.code },
  };
  const text = problem?.detail ?? `${ref} is at ${liveCommit(deployment).slice(0, 7)}`;
  log[state === "succeeded" ? "info" : "error"](fields, `Deployment ${id} ${endingTexts[state]}: ${text}`);
}

const endingTexts: Readonly<Record<Ending["state"], string>> = {
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
  interrupted: "was interrupted",
};

function cancel(state: ExecutorState, deploymentId: number, by: string | null): boolean {
  if (state.current !== deploymentId) return false;
  requestCancel(state.store, deploymentId, by, state.log);
  state.cancelled = deploymentId;
  state.run?.end("cancelled", cancelGraceMs);
  return true;
}
