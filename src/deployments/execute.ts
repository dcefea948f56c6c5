import { formatDuration } from "#config/values";
import { shortCommit } from "#deployments/push";
import type { Log } from "#log";
import { keepTrying, pause } from "#platform/async";
import type { Store } from "#platform/sqlite";
import type { DeploymentReport } from "#rollout/report";
import {
  type Deployment,
  type Ending,
  liveCommit,
  type Rest,
  type RolloutExchange,
  type Run,
  type Runner,
  stateTexts,
} from "./deployment.ts";
import { pruneHistory } from "./history.ts";
import { recordStatement } from "./receipt.ts";
import {
  findDeployment,
  hasDeployment,
  IllegalTransition,
  isUnasked,
  putBack,
  selectDeployments,
  transition,
} from "./store.ts";

/** Executes one deployment at a time. The caller makes sure that it is one. */
export interface Executor {
  /** Starts the script of a claimed deployment. Resolves when its ending is recorded, or that it waits. */
  readonly execute: (deployment: Deployment) => Promise<void>;
  /**
   * Recovers what an earlier service left behind, oldest first. A script that still runs is adopted, one that has ended is
   * recorded as it ended, and one that is gone was interrupted and runs again, three times at most. A deployment that was
   * being cancelled is cancelled in each case.
   */
  readonly recover: () => Promise<void>;
  /** The deployments that wait for something else than their turn, and are not to be started yet. */
  readonly resting: () => readonly number[];
  /** Shortens the rest of those that wait for the git host: a signed delivery has come. */
  readonly shortenRests: () => void;
  /** @returns false if it is not the current deployment. @throws if it cannot be written to disk: the script is ended all the same */
  readonly cancel: (deploymentId: number, by: string | null) => boolean;
  /** Terminates the current script and any started later, so that the next service reruns them. */
  readonly interrupt: () => void;
}

export interface ExecutorOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly exchange: RolloutExchange;
  /** Called for each deployment that starts, goes live, ends or waits again here, when that is on disk. */
  readonly onChange: (deploymentId: number, isRunning: boolean) => void;
  /** Called when the script of a deployment was started. */
  readonly onStart: (deployment: Deployment) => void;
  /** How long a deployment that waits for its remote rests. */
  readonly askEveryMs: () => number;
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
  /** Aborted when somebody cancels it. */
  readonly cancelled: AbortController;
}

/** Makes the executor, which takes a deployment from its start to its recorded ending. */
export function createExecutor(options: ExecutorOptions): Executor {
  const { store, runner, exchange, onChange, onStart, askEveryMs, log, stopping } = options;
  const persist = <Result>(write: () => Result) => writeOnDisk(options, write);
  let current: Current | null = null;
  let isInterrupting = false;
  let startRetryMs = firstStartRetryMs;
  let lastWaitReason: string | null = null;
  /** When each began its last look, and until when it rests, by a clock that never jumps. */
  const rests = new Map<number, Rest & { readonly lookedAtMs: number }>();
  let lookedAtMs = 0;
  let shortenedAtMs = Number.NEGATIVE_INFINITY;
  const isCancelled = () => current?.cancelled.signal.aborted ?? false;

  async function execute(deployment: Deployment): Promise<void> {
    const cancelled = new AbortController();
    current = { id: deployment.id, run: null, cancelled };
    lookedAtMs = performance.now();
    onChange(deployment.id, true);
    const start = await runner.start(deployment, AbortSignal.any([stopping, cancelled.signal]));
    switch (start.kind) {
      case "started":
        logState(log, deployment, "running", `${deployment.ref} at ${shortCommit(deployment.commit)}`);
        onStart(deployment);
        return await watch(deployment, start.run);
      case "refused":
        return await record(deployment, { state: "failed", exitCode: null, problem: start.problem });
      case "skipped":
        return await skip(deployment, start.reason);
      case "wait":
        return await rest(deployment, start.reason, start.rest ?? exactly(askEveryMs()));
      case "try-again":
        return await retryLater(deployment, start.detail);
    }
  }

  async function skip(deployment: Deployment, reason: string): Promise<void> {
    if (isCancelled()) return await record(deployment, cancelledEnding);
    await persist(() => transition(store, deployment, "skipped", { skipReason: reason }));
    current = null;
    logState(log, deployment, "skipped", reason);
    onChange(deployment.id, false);
    await persist(() => pruneHistory(store));
  }

  async function watch(deployment: Deployment, run: Run): Promise<void> {
    current = { cancelled: new AbortController(), ...current, id: deployment.id, run };
    if (isCancelled()) run.end("cancelled", cancelGraceMs);
    if (isInterrupting) run.end("interrupted", interruptGraceMs);
    const stopWatching = watchRollout(deployment, options);
    const ending = await run.ended;
    stopWatching();
    if (ending.state === "not_started") return await retryLater(deployment, ending.detail);
    startRetryMs = firstStartRetryMs;
    await record(deployment, ending);
  }

  /** Its script could not be started for the moment. */
  async function retryLater(deployment: Deployment, detail: string): Promise<void> {
    const fields = { event: "deployment.not_started", deployment: deployment.id };
    log.warn(fields, `${detail} Trying again in ${formatDuration(startRetryMs)}.`);
    runner.tidy(deployment.id);
    await rest(deployment, detail, exactly(startRetryMs));
    startRetryMs = Math.min(2 * startRetryMs, longestStartRetryMs);
  }

  async function rest(deployment: Deployment, waitReason: string, { leastMs, mostMs }: Rest): Promise<void> {
    const { id, ref, commit } = deployment;
    const nowMs = performance.now();
    rests.set(id, { lookedAtMs, leastMs: nowMs + leastMs, mostMs: nowMs + mostMs });
    await persist(() => {
      putBack(store, deployment, waitReason);
      if (isCancelled()) cancelQueued(store, id, null);
    });
    const fields = { event: "deployment.waits", deployment: id, ref, commit };
    if (isCancelled()) logCancelled(log, id);
    else if (waitReason !== lastWaitReason) log.info(fields, `Deployment ${id} waits: ${waitReason}`);
    current = null;
    lastWaitReason = waitReason;
    onChange(id, false);
  }

  async function record(deployment: Deployment, ending: Ending): Promise<void> {
    const report = exchange.read(deployment.id);
    const recorded = await persist(() => {
      recordRollout(store, deployment, report);
      if (report.isTakenBack) takeBack(store, deployment.id);
      const settled = settle(store, deployment, ending, { doesResume: !stopping.aborted });
      const ended = findDeployment(store, deployment.id);
      if (ended?.state === "succeeded") recordStatement(store, ended, report);
      return { settled, deployment: ended };
    });
    // From now on a cancellation finds it in the queue, if anywhere.
    current = null;
    logEnding(log, recorded?.deployment ?? deployment, recorded?.settled ?? ending);
    onChange(deployment.id, false);
    runner.tidy(deployment.id);
    exchange.tidy(deployment.id);
    await persist(() => pruneHistory(store));
  }

  async function recover(): Promise<void> {
    const unfinished =
      "WHERE project = $project AND state IN ('running', 'interrupted') ORDER BY queue_order";
    for (const deployment of selectDeployments(store, unfinished)) {
      if (deployment.state === "running") await recoverRunning(deployment);
      else {
        runner.tidy(deployment.id);
        exchange.tidy(deployment.id);
        await persist(() => resume(store, deployment.id));
      }
    }
  }

  async function recoverRunning(deployment: Deployment): Promise<void> {
    const { id, ref, commit } = deployment;
    const what = `It is not known yet whether the script of deployment ${id} still runs`;
    const adopt = () => runner.adopt(deployment);
    const adoption = await keepTrying(adopt, { what, signal: stopping, log });
    if (adoption === null) return;
    const fields = { event: `deployment.${adoptionEvents[adoption.kind]}`, deployment: id, ref, commit };
    log.warn(fields, `A service has died while deployment ${id} ran: ${adoptionTexts[adoption.kind]}`);
    const isUnwanted = isCancelRequested(store, id);
    if (adoption.kind === "gone") return await record(deployment, diedWithService);
    if (adoption.kind === "ended")
      return await record(deployment, isUnwanted ? cancelledEnding : adoption.ending);
    if (isUnwanted) adoption.run.end("cancelled", cancelGraceMs);
    await watch(deployment, adoption.run);
  }

  return {
    execute,
    recover,
    resting() {
      const nowMs = performance.now();
      for (const [id, rest] of rests) {
        const untilMs = shortenedAtMs > rest.lookedAtMs ? rest.leastMs : rest.mostMs;
        if (untilMs <= nowMs) rests.delete(id);
      }
      return [...rests.keys()];
    },
    shortenRests() {
      shortenedAtMs = performance.now();
    },
    cancel(deploymentId, by) {
      if (current?.id !== deploymentId) return false;
      try {
        noteCancel(store, deploymentId, by);
      } finally {
        current.cancelled.abort();
        current.run?.end("cancelled", cancelGraceMs);
      }
      return true;
    },
    interrupt() {
      isInterrupting = true;
      current?.run?.end("interrupted", interruptGraceMs);
    },
  };
}

function exactly(ms: number): Rest {
  return { leastMs: ms, mostMs: ms };
}

/** Logs that a deployment has begun, or has ended in a state. */
function logState(
  log: Log,
  { id, trigger, ref, commit, attempts }: Deployment,
  state: Deployment["state"],
  text: string,
  details: object = {},
): void {
  const event = `deployment.${state === "running" ? "started" : state}`;
  const fields = { event, deployment: id, trigger, ref, commit, attempt: attempts, ...details };
  const level = levels[state] ?? "error";
  log[level](fields, `Deployment ${id} ${stateTexts[state]}: ${text}`);
}

const levels: Partial<Record<Deployment["state"], "info" | "warn">> = {
  running: "info",
  succeeded: "info",
  skipped: "info",
  interrupted: "warn",
};

function logEnding(log: Log, deployment: Deployment, { state, exitCode, problem }: Ending): void {
  const { ref, checkedOutCommit } = deployment;
  const text = problem?.detail ?? `${ref} is at ${shortCommit(liveCommit(deployment))}`;
  logState(log, deployment, state, text, { checkedOutCommit, exitCode, code: problem?.code });
}

export function logCancelled(log: Log, id: number): void {
  const text = `Deployment ${id} was cancelled before its script started`;
  log.info({ event: "deployment.cancelled", deployment: id }, text);
}

const pollMs = 200;

/**
 * Watches what the roll-out of a run reports: when the new version went live, which is recorded at once, and whether it is
 * guarded. If a newer deployment waits meanwhile, or the service stops, the roll-out is asked to end the guard.
 *
 * @returns a function that ends the watch
 */
function watchRollout(
  deployment: Deployment,
  { store, exchange, onChange, stopping }: ExecutorOptions,
): () => void {
  let isGuarding = false;
  let knownLiveAtMs: number | null = null;
  let isAskedToEnd = false;

  function look(): void {
    const report = exchange.read(deployment.id);
    const isNews = report.isGuarding !== isGuarding || report.liveAtMs !== knownLiveAtMs;
    isGuarding = report.isGuarding;
    if (report.liveAtMs !== knownLiveAtMs) store.transaction(() => recordRollout(store, deployment, report));
    knownLiveAtMs = report.liveAtMs;
    if (isNews) onChange(deployment.id, true);
    if (!isGuarding || isAskedToEnd || !(stopping.aborted || hasDeployment(store, isNext))) return;
    exchange.order(deployment.id, "end");
    isAskedToEnd = true;
  }

  const timer = setInterval(() => {
    try {
      look();
    } catch {
      // The disk or the database is busy: the next look does it.
    }
  }, pollMs);
  return () => clearInterval(timer);
}

const isNext = "project = $project AND state = 'queued' AND wait_reason IS NULL";

/** Records what the roll-out of a run reported, before it is settled. Call it in a transaction. */
function recordRollout(
  store: Store,
  { id, attempts }: Deployment,
  { liveAtMs, requests, pinned }: DeploymentReport,
): void {
  const sql = `UPDATE deployments SET live_at_ms = ?, requests = ?, images = coalesce(?, images)
    WHERE id = ? AND attempts = ? AND state = 'running'`;
  const images = pinned && JSON.stringify(pinned);
  store.run(sql, liveAtMs, requests && JSON.stringify(requests), images, id, attempts);
}

/**
 * Records how a running deployment ended, and what happens next if it was interrupted. Call it in a transaction. It is
 * one transaction because in between another instance may record a newer push, which supersedes an interrupted one.
 *
 * @param options.doesResume false while the service stops: the next one decides about an interrupted deployment
 * @returns the ending as it is recorded
 */
export function settle(
  store: Store,
  deployment: Deployment,
  ending: Ending,
  { doesResume = false }: { readonly doesResume?: boolean } = {},
): Ending {
  const { id } = deployment;
  const isUnwanted = isCancelRequested(store, id) || isTakenBack(store, id);
  const { state, ...details } = ending.state === "interrupted" && isUnwanted ? cancelledEnding : ending;
  transition(store, { id, state: "running" }, state, details);
  const gaveUp = state === "interrupted" && doesResume ? resume(store, id) : null;
  return gaveUp ?? { state, ...details };
}

/** A deployment that was interrupted this often since it was asked for is given up: it may be what takes the service down. */
const mostAttempts = 3;

/**
 * Decides what happens to an interrupted deployment. Call it in a transaction. It runs again, unless a newer push of the
 * branch waits, it was interrupted too often, or another instance has superseded it.
 *
 * @returns how it ended, if it was given up
 */
export function resume(store: Store, id: number): Ending | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "interrupted") return null;
  const supersededBy = findWaiting(store, deployment);
  if (supersededBy !== null) {
    transition(store, deployment, "superseded", { supersededBy });
    return null;
  }
  const sql = "SELECT attempts - asked_attempts AS count FROM deployments WHERE id = ?";
  const count = Number(store.get(sql, id)?.count);
  const ending = count < mostAttempts ? null : gaveUp(count);
  transition(store, deployment, ending?.state ?? "queued", ending ?? {});
  return ending;
}

/** What a person has asked for runs again in any case. */
function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql = `SELECT max(id) AS id FROM deployments WHERE project = $project AND ref = ? AND id > ? AND state = 'queued'
    AND EXISTS (SELECT 1 FROM deployments WHERE id = ? AND ${isUnasked})`;
  return (store.get(sql, ref, id, id)?.id as number | null) ?? null;
}

function gaveUp(count: number): Ending {
  const detail = `The deployment was started ${count} times and Hotpush was stopped or killed each time before it ended. If its script replaces the container of Hotpush itself, leave that service out, as hotpush rollout does with compose; on a Swarm, give it a stack of its own. Then redeliver the push.`;
  return { state: "failed", exitCode: null, problem: { code: "deployment_gave_up", detail } };
}

/**
 * Cancels a deployment that waits in the queue. Call it in a transaction.
 *
 * @param by who requested it, as the command reported
 * @returns whether it waited; if it runs, the queue has to end it
 */
export function cancelQueued(store: Store, id: number, by: string | null): boolean {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "queued") return false;
  transition(store, deployment, "cancelled");
  store.run("UPDATE deployments SET cancelled_by = coalesce(cancelled_by, ?) WHERE id = ?", by, id);
  return true;
}

/** The ending of a run that somebody cancelled. */
const cancelledEnding: Ending = { state: "cancelled", exitCode: null, problem: null };

/** How long a cancelled script may take to end by itself: as long as at its time-out. */
const cancelGraceMs = 15_000;

/**
 * Records that a running deployment is being cancelled, before its script is asked to end: if the service dies first,
 * the script is not run again.
 */
function noteCancel(store: Store, id: number, by: string | null): void {
  const sql =
    "UPDATE deployments SET cancel_asked_at_ms = ?, cancelled_by = coalesce(cancelled_by, ?), is_taken_back = max(is_taken_back, live_at_ms IS NOT NULL) WHERE id = ?";
  store.transaction(() => store.run(sql, Date.now(), by, id));
}

/** Records that a person, or the guard, takes the version of a deployment back: only a person deploys it again. Call it in a transaction. */
export function takeBack(store: Store, id: number): void {
  store.run("UPDATE deployments SET is_taken_back = 1 WHERE id = ?", id);
}

/** Whether a person, or the guard, has taken the version of a deployment back. */
export function isTakenBack(store: Store, id: number): boolean {
  return hasDeployment(store, "id = ? AND is_taken_back", id);
}

/** Whether somebody cancelled a deployment since its last start. */
function isCancelRequested(store: Store, id: number): boolean {
  return hasDeployment(store, "id = ? AND cancel_asked_at_ms IS NOT NULL", id);
}

const adoptionEvents = { alive: "adopted", ended: "ended_unwatched", gone: "lost" } as const;
const adoptionTexts = {
  alive: "its script still runs and is adopted",
  ended: "its script ended since then",
  gone: "nothing of its script is left",
} as const;

const diedWithService: Ending = {
  state: "interrupted",
  exitCode: null,
  problem: {
    code: "deployment_interrupted",
    detail: "deploy.sh ended with its Hotpush and left no exit code.",
  },
};

const persistAgainMs = 1_000;

/**
 * Records what has happened, in one transaction. It retries until the disk works, so that nothing else starts before; it gives
 * up when the service stops. An illegal transition is logged and left undone: it would never become legal.
 *
 * @returns the result of `write`, or null if nothing was written
 */
async function writeOnDisk<Result>(
  { store, log, stopping }: Pick<ExecutorOptions, "store" | "log" | "stopping">,
  write: () => Result,
): Promise<Result | null> {
  for (;;) {
    try {
      return store.transaction(write);
    } catch (error) {
      const isIllegal = error instanceof IllegalTransition;
      const text = isIllegal
        ? "The record does not allow what happened, and stays as it is"
        : "What happened could not be written to disk; trying again in 1 s";
      log.error({ event: "store.failed", err: error }, text);
      if (isIllegal || stopping.aborted) return null;
      await pause(persistAgainMs, stopping);
    }
  }
}
