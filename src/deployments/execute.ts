import { formatDuration } from "../config/duration.ts";
import type { Log } from "../log.ts";
import { pause } from "../platform/keep-trying.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { cancelGraceMs, cancelledEnding, cancelQueued, requestCancel } from "./cancel.ts";
import { type ReadSource, recordRollout, recordSource } from "./checked-out.ts";
import {
  type Deployment,
  type Ending,
  liveCommit,
  type RolloutExchange,
  type Run,
  type Runner,
  type Skip,
  type Source,
} from "./deployment.ts";
import { pruneHistory } from "./history.ts";
import { settle } from "./record-ending.ts";
import type { Persist } from "./retry.ts";
import { settleSkipped } from "./skips.ts";
import { putBack } from "./states.ts";
import { watchGuard } from "./watch-guard.ts";

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
}

export interface ExecutorOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly persist: Persist;
  readonly readSource: ReadSource;
  readonly exchange: RolloutExchange;
  /** Called when the new version of the deployment is live and only watched, and when that is over. */
  readonly onGuard: (isGuarding: boolean) => void;
  readonly onChange: (deploymentId: number) => void;
  /** Called when the script of a deployment was started. */
  readonly onStart: (deployment: Deployment) => void;
  /** Called before a wait in which nothing runs. */
  readonly onIdle: () => void;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

const firstStartRetryMs = 1_000;
const longestStartRetryMs = 60_000;
/** How long an interrupted script may take to end by itself before it is killed. */
const interruptGraceMs = 2_000;

/** The deployment that is executed, and its run as soon as there is one. */
interface Current {
  readonly id: number;
  readonly run: Run | null;
  isCancelled: boolean;
}

/** Makes the executor, which takes a deployment from its start to its recorded ending. */
export function createExecutor(options: ExecutorOptions): Executor {
  const { store, runner, persist, readSource, exchange, onGuard, onChange, onStart, onIdle, log, stopping } =
    options;
  let current: Current | null = null;
  let isInterrupting = false;
  let startRetryMs = firstStartRetryMs;

  async function execute(deployment: Deployment): Promise<void> {
    current = { id: deployment.id, run: null, isCancelled: false };
    onChange(deployment.id);
    const start = await runner.start(deployment);
    if (start.kind === "try-again") return await retryLater(deployment, start.detail);
    if (start.kind === "skipped") return await skip(deployment, start.skip);
    if (start.kind === "refused") {
      return await record(deployment, { state: "failed", exitCode: null, problem: start.problem }, null);
    }
    logStart(log, deployment);
    onStart(deployment);
    await watch(deployment, start.run);
  }

  async function skip(deployment: Deployment, found: Skip): Promise<void> {
    if (current?.isCancelled) return await record(deployment, cancelledEnding, null);
    const isSkipped = await persist(() => {
      const isOver = settleSkipped(store, deployment, found);
      // Somebody may have cancelled it while the database was busy.
      if (!isOver && current?.isCancelled) cancelQueued(store, deployment.id, null);
      return isOver;
    });
    current = null;
    if (isSkipped) logSkipped(log, deployment, found);
    onChange(deployment.id);
    await persist(() => pruneHistory(store));
  }

  async function watch(deployment: Deployment, run: Run): Promise<void> {
    current = { isCancelled: false, ...current, id: deployment.id, run };
    if (current.isCancelled) run.end("cancelled", cancelGraceMs);
    if (isInterrupting) run.end("interrupted", interruptGraceMs);
    const stopWatching = watchGuard(deployment, { store, exchange, onGuard, onChange, stopping });
    const ending = await run.ended;
    stopWatching();
    if (ending.state === "not_started") return await retryLater(deployment, ending.detail);
    startRetryMs = firstStartRetryMs;
    await conclude(deployment, ending);
  }

  async function retryLater(deployment: Deployment, detail: string): Promise<void> {
    const fields = { event: "deployment.not_started", deployment: deployment.id };
    log.warn(fields, `${detail} Trying again in ${formatDuration(startRetryMs)}.`);
    runner.tidy(deployment.id);
    await persist(() => {
      putBack(store, deployment);
      if (current?.isCancelled) cancelQueued(store, deployment.id, null);
    });
    current = null;
    onChange(deployment.id);
    onIdle();
    await pause(startRetryMs, stopping);
    startRetryMs = Math.min(2 * startRetryMs, longestStartRetryMs);
  }

  /** Records how a run ended and what it has checked out, which an interrupted one has yet to do. */
  async function conclude(deployment: Deployment, ending: Ending): Promise<void> {
    const source = ending.state === "interrupted" ? null : await readSource(deployment, ending.state);
    await record({ ...deployment, ...source }, ending, source);
  }

  async function record(deployment: Deployment, ending: Ending, source: Source | null): Promise<void> {
    const report = exchange.read(deployment.id);
    const recorded = await persist(() => {
      if (source !== null) recordSource(store, deployment, source);
      recordRollout(store, deployment, report);
      const isCancelled = current?.isCancelled ?? false;
      return settle(store, deployment, ending, { isCancelled, doesResume: !stopping.aborted });
    });
    // From now on a cancellation finds it in the queue, if anywhere.
    current = null;
    logEnding(log, deployment, recorded ?? ending);
    onChange(deployment.id);
    runner.tidy(deployment.id);
    exchange.tidy(deployment.id);
    await persist(() => pruneHistory(store));
  }

  return {
    execute,
    watch,
    conclude,
    cancel(deploymentId, by) {
      if (current?.id !== deploymentId) return false;
      requestCancel(store, deploymentId, by, log);
      current.isCancelled = true;
      current.run?.end("cancelled", cancelGraceMs);
      return true;
    },
    interrupt() {
      isInterrupting = true;
      current?.run?.end("interrupted", interruptGraceMs);
    },
  };
}

function logStart(log: Log, { id, trigger, ref, commit, attempts }: Deployment): void {
  const fields = { event: "deployment.started", deployment: id, trigger, ref, commit, attempt: attempts };
  log.info(fields, `Deployment ${id} started: ${ref} at ${commit.slice(0, 7)}`);
}

function logSkipped(log: Log, { id, ref, commit }: Deployment, { reason }: Skip): void {
  log.info(
    { event: "deployment.skipped", deployment: id, ref, commit },
    `Deployment ${id} was skipped: ${reason}`,
  );
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
