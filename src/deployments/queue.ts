import type { Log } from "#log";
import { keepTrying, pause } from "#platform/async";
import type { Store } from "#platform/sqlite";
import type { DeploymentReport } from "#rollout/report";
import {
  type Deployment,
  type Ending,
  type Rest,
  type RolloutExchange,
  type Run,
  type Runner,
  soon,
  stateTexts,
} from "./deployment.ts";
import { pruneHistory } from "./history.ts";
import { shortCommit } from "./push.ts";
import { recordStatement } from "./receipt.ts";
import {
  cancelledEnding,
  cancelQueued,
  type DeploymentRequest,
  isCancelRequested,
  noteCancel,
  recordRequest,
  resume,
  settle,
  takeBack,
} from "./record.ts";
import {
  claimNext,
  findDeployment,
  findRunning,
  hasDeployment,
  IllegalTransition,
  isReady,
  putBack,
  selectDeployments,
} from "./store.ts";

export interface Queue {
  /**
   * Starts to run deployments: first what an earlier service left behind, then what is queued. A script that still runs is
   * adopted, one that has ended is recorded as it ended, and one that is gone was interrupted and runs again, three times at
   * most. A deployment that was being cancelled is cancelled in each case.
   */
  readonly start: () => void;
  /** Records a deployment that no push asked for, and starts it if nothing runs. @throws if it cannot be written to disk */
  readonly request: (request: DeploymentRequest) => Deployment;
  /** Starts what is queued, if nothing runs. */
  readonly wake: () => void;
  /** Looks soon at what waits for the git host: a signed delivery has come. */
  readonly lookSoon: () => void;
  /**
   * Ends a running deployment as its time-out would, or removes it from the queue. Its final state is `cancelled`.
   *
   * @param by who requested it, as the command reported
   * @returns false if it neither runs here nor waits
   * @throws if it cannot be written to disk: a script that runs is ended all the same
   */
  readonly cancel: (deploymentId: number, by?: string | null) => boolean;
  /** The running deployment whose new version is live and only watched, or null. */
  readonly findGuarded: () => Deployment | null;
  /** Has that deployment go back to the version before; then it fails. @throws the system's error */
  readonly goBack: (deploymentId: number) => void;
  /** Starts nothing more. Lets the running deployment go on for `graceMs`, then interrupts it, so that the next service reruns it. */
  readonly stop: (graceMs: number) => Promise<void>;
}

export interface QueueOptions {
  readonly store: Store;
  readonly runner: Runner;
  readonly exchange: RolloutExchange;
  /** Whether nothing more may be started here: the project was removed. */
  readonly isHeld: () => boolean;
  /** The right to run, which projects share. */
  readonly inTurn: Turns["run"];
  /** Called for each deployment that starts, goes live, ends or waits again here, when that is on disk. */
  readonly onChange: (deploymentId: number, isRunning: boolean) => void;
  /** Called when the script of a deployment was started. */
  readonly onStart: (deployment: Deployment) => void;
  /** How long a deployment that waits for its remote rests. */
  readonly askEveryMs: () => number;
  readonly log: Log;
}

const lookIntervalMs = 1_000;
/** How long a cancelled script may take to end by itself: as long as at its time-out. */
const cancelGraceMs = 15_000;
/** How long an interrupted script may take to end by itself before it is killed. */
const interruptGraceMs = 2_000;

/** The deployment that is executed. */
interface Current {
  readonly id: number;
  /** null until its script is started. */
  run: Run | null;
  /** Aborted when somebody cancels it. */
  readonly cancelled: AbortController;
}

/**
 * Runs the deployments of a project one at a time, in the order of the queue: each from its claim to its recorded ending. Three
 * things make sure that only one runs: this queue, the database, and the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, runner, exchange, isHeld, onChange, onStart, inTurn, askEveryMs, log } = options;
  const stop = new AbortController();
  const stopping = stop.signal;
  const persist = <Result>(write: () => Result) => writeOnDisk(options, stopping, write);
  let mode: "unstarted" | "idle" | "waiting" | "busy" | "stopping" = "unstarted";
  /** What `stop` waits for, unless it waits for its turn. */
  let work: Promise<void> = Promise.resolve();
  let lookTimer: NodeJS.Timeout | undefined;
  let current: Current | null = null;
  let isInterrupting = false;
  let lastWait = "";
  /** Of what waits for something else than its turn: when its last look began, and until when it rests, by a clock that never jumps. */
  const rests = new Map<number, Rest & { readonly lookedAtMs: number }>();
  let lookedAtMs = 0;
  let shortenedAtMs = Number.NEGATIVE_INFINITY;

  /** Nothing else starts until `task` is done. */
  async function occupy(task: () => Promise<void>): Promise<void> {
    mode = "busy";
    await task();
    if (mode !== "busy") return;
    mode = "idle";
    // Then the turn is given back: who waits for it is first.
    setImmediate(wake);
  }

  /** Waits for its turn, if something is queued that may start. */
  function wake(): void {
    if (mode !== "idle" || isHeld()) return;
    const isDue = `${isReady} OR project = $project AND state = 'running'`;
    // If it cannot be read, the transaction of a turn opens it again.
    if (read(() => hasDeployment(store, isDue, JSON.stringify(listResting()))) === false) return;
    mode = "waiting";
    work = inTurn(takeTurn);
  }

  async function takeTurn(): Promise<void> {
    if (mode !== "waiting") return;
    mode = "idle";
    const claimed = isHeld() ? null : read(() => store.transaction(claim));
    if (claimed) await occupy(() => execute(claimed));
  }

  /** Nothing runs here. So a running one is a claim of ours whose commit failed, and that the disk has all the same. */
  function claim(): Deployment | null {
    const unstarted = findRunning(store);
    if (unstarted !== null) putBack(store, unstarted);
    return claimNext(store, listResting());
  }

  function read<Found>(find: () => Found): Found | null {
    try {
      return find();
    } catch (error) {
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
      return null;
    }
  }

  /** Starts the script of a claimed deployment. Resolves when its ending is recorded, or that it waits. */
  async function execute(deployment: Deployment): Promise<void> {
    const { cancelled } = begin(deployment);
    lookedAtMs = performance.now();
    onChange(deployment.id, true);
    const start = await runner.start(deployment, AbortSignal.any([stopping, cancelled.signal]));
    if (start.kind === "wait") return await rest(deployment, start.reason, start.rest);
    if (start.kind === "refused")
      return await record(deployment, { ...failedEnding, problem: start.problem });
    if (start.kind === "skipped")
      return await record(deployment, { ...skippedEnding, skipReason: start.reason });
    logState(log, deployment, "running");
    onStart(deployment);
    await watch(deployment, start.run);
  }

  function begin({ id }: Deployment): Current {
    current = { id, run: null, cancelled: new AbortController() };
    return current;
  }

  const isCancelled = () => current?.cancelled.signal.aborted ?? false;

  async function watch(deployment: Deployment, run: Run): Promise<void> {
    if (current) current.run = run;
    if (isCancelled()) run.end("cancelled", cancelGraceMs);
    if (isInterrupting) run.end("interrupted", interruptGraceMs);
    const stopWatching = watchRollout(deployment, options, stopping);
    const ending = await run.ended;
    stopWatching();
    if (ending.state !== "not_started") return await record(deployment, ending);
    runner.tidy(deployment.id);
    await rest(deployment, ending.detail, soon);
  }

  async function rest(deployment: Deployment, waitReason: string, given?: Rest): Promise<void> {
    if (isCancelled()) return await record(deployment, cancelledEnding);
    const { id, ref, commit } = deployment;
    const { leastMs, mostMs } = given ?? { leastMs: askEveryMs(), mostMs: askEveryMs() };
    const nowMs = performance.now();
    rests.set(id, { lookedAtMs, leastMs: nowMs + leastMs, mostMs: nowMs + mostMs });
    await persist(() => putBack(store, deployment, waitReason));
    const fields = { event: "deployment.waits", deployment: id, ref, commit };
    const wait = `Deployment ${id} waits: ${waitReason}`;
    if (wait !== lastWait) log.info(fields, wait);
    current = null;
    lastWait = wait;
    onChange(id, false);
  }

  /** The deployments that are not to be started yet. The shorter rest counts for those whose last look began before a delivery. */
  function listResting(): readonly number[] {
    const nowMs = performance.now();
    for (const [id, one] of rests) {
      const untilMs = shortenedAtMs > one.lookedAtMs ? one.leastMs : one.mostMs;
      if (untilMs <= nowMs) rests.delete(id);
    }
    return [...rests.keys()];
  }

  /** @param isAttempt false if its service died before the script was started: that costs no attempt */
  async function record(deployment: Deployment, ending: Ending, isAttempt = true): Promise<void> {
    const { id } = deployment;
    const report = exchange.read(id);
    // One transaction: in between another instance may record a newer push, which supersedes an interrupted one.
    const recorded = await persist(() => {
      recordRollout(store, deployment, report);
      if (!isAttempt) store.run("UPDATE deployments SET attempts = attempts - 1 WHERE id = ?", id);
      if (report.isTakenBack) takeBack(store, id);
      const settled = settle(store, deployment, ending);
      const ended = findDeployment(store, id);
      if (ended?.state === "succeeded") recordStatement(store, ended, report);
      // While this service stops, the next one decides about an interrupted deployment.
      const gaveUp = stopping.aborted ? null : resume(store, id);
      return { ended, ending: gaveUp ?? settled };
    });
    // From now on a cancellation finds it in the queue, if anywhere.
    current = null;
    const told = recorded?.ending ?? ending;
    logState(log, recorded?.ended ?? deployment, told.state, told);
    onChange(id, false);
    // What is left of the run tells the next service how it ended. One that this stop has ended is run again.
    if (recorded === null && stopping.aborted && ending.state !== "interrupted") return;
    tidy(id);
    await persist(() => pruneHistory(store));
  }

  function tidy(id: number): void {
    runner.tidy(id);
    exchange.tidy(id);
  }

  async function recover(): Promise<void> {
    const unfinished =
      "WHERE project = $project AND state IN ('running', 'interrupted') ORDER BY queue_order";
    for (const deployment of selectDeployments(store, unfinished)) {
      if (deployment.state === "running") await recoverRunning(deployment);
      else {
        tidy(deployment.id);
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
    const [event, text] = adoptions[adoption.kind];
    const fields = { event: `deployment.${event}`, deployment: id, ref, commit };
    log.warn(fields, `A service has died while deployment ${id} ran: ${text}`);
    const { cancelled } = begin(deployment);
    if (isCancelRequested(store, id)) cancelled.abort();
    if (adoption.kind === "alive") return await watch(deployment, adoption.run);
    if (adoption.kind === "gone") return await record(deployment, diedWithService, adoption.hasBegun);
    await record(deployment, isCancelled() ? cancelledEnding : adoption.ending);
  }

  function cancelCurrent(id: number, by: string | null): boolean {
    if (current?.id !== id) return false;
    try {
      noteCancel(store, id, by);
    } finally {
      current.cancelled.abort();
      current.run?.end("cancelled", cancelGraceMs);
    }
    return true;
  }

  function cancelWaiting(id: number, by: string | null): boolean {
    const waiting = store.transaction(() => cancelQueued(store, id, by));
    if (waiting === null) return false;
    logState(log, waiting, "cancelled");
    onChange(id, false);
    return true;
  }

  return {
    start() {
      work = inTurn(() => occupy(recover), true);
      lookTimer = setInterval(wake, lookIntervalMs).unref();
    },
    request(request) {
      const deployment = store.transaction(() => recordRequest(store, request));
      wake();
      return deployment;
    },
    wake,
    lookSoon() {
      shortenedAtMs = performance.now();
      wake();
    },
    cancel: (id, by = null) => cancelCurrent(id, by) || cancelWaiting(id, by),
    findGuarded() {
      const running = findRunning(store);
      return running !== null && exchange.read(running.id).isGuarding ? running : null;
    },
    goBack(id) {
      store.transaction(() => takeBack(store, id));
      exchange.order(id, "back");
    },
    async stop(graceMs) {
      const isBusy = mode === "busy";
      mode = "stopping";
      stop.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(() => {
        isInterrupting = true;
        current?.run?.end("interrupted", interruptGraceMs);
      }, graceMs);
      if (isBusy) await work;
      clearTimeout(timer);
    },
  };
}

const failedEnding = { state: "failed", exitCode: null } as const;
const skippedEnding = { state: "skipped", exitCode: null, problem: null } as const;
const diedWithService: Ending = {
  state: "interrupted",
  exitCode: null,
  problem: {
    code: "deployment_interrupted",
    detail: "The script ended with its Hotpush and left no exit code.",
  },
};

/** What is left of a run after its service died: the event, and its text. */
const adoptions = {
  alive: ["adopted", "its script still runs and is adopted"],
  ended: ["ended_unwatched", "its script ended since then"],
  gone: ["lost", "nothing of its script is left"],
} as const;

/** Logs that a deployment has begun, or how it has ended. */
function logState(
  log: Log,
  { id, trigger, ref, commit, attempts, checkedOutCommit }: Deployment,
  state: Deployment["state"],
  { exitCode, problem, skipReason }: Partial<Ending> = {},
): void {
  const event = `deployment.${state === "running" ? "started" : state}`;
  const result = { checkedOutCommit, exitCode, code: problem?.code };
  const fields = { event, deployment: id, trigger, ref, commit, attempt: attempts, ...result };
  const text = problem?.detail ?? skipReason ?? `${ref} at ${shortCommit(checkedOutCommit ?? commit)}`;
  log[levels[state] ?? "info"](fields, `Deployment ${id} ${stateTexts[state]}: ${text}`);
}

const levels: Partial<Record<Deployment["state"], "warn" | "error">> = {
  interrupted: "warn",
  failed: "error",
  timed_out: "error",
};

const pollMs = 200;

/**
 * Watches what the roll-out of a run reports: when the new version went live, which is recorded at once, and whether it is
 * guarded. If a newer deployment waits meanwhile, or the service stops, the roll-out is asked to end the guard.
 *
 * @returns a function that ends the watch
 */
function watchRollout(
  deployment: Deployment,
  { store, exchange, onChange }: QueueOptions,
  stopping: AbortSignal,
): () => void {
  let known: Pick<DeploymentReport, "isGuarding" | "liveAtMs"> = { isGuarding: false, liveAtMs: null };
  let isAskedToEnd = false;

  function look(): void {
    const report = exchange.read(deployment.id);
    if (report.isGuarding !== known.isGuarding || report.liveAtMs !== known.liveAtMs) {
      store.transaction(() => recordRollout(store, deployment, report));
      known = report;
      onChange(deployment.id, true);
    }
    if (!report.isGuarding || isAskedToEnd || !(stopping.aborted || hasDeployment(store, isNext))) return;
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

const persistAgainMs = 1_000;

/**
 * Records what has happened, in one transaction. It retries until the disk works, so that nothing else starts before; it gives
 * up when the service stops. An illegal transition is logged and left undone: it would never become legal.
 *
 * @returns the result of `write`, or null if nothing was written
 */
async function writeOnDisk<Result>(
  { store, log }: Pick<QueueOptions, "store" | "log">,
  stopping: AbortSignal,
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

/** The turns of all projects of a service. */
export interface Turns {
  /**
   * Runs `work` when fewer than the most run, nothing holds, and nobody has waited for longer; at once, if so.
   *
   * @param isUnderWay for a script that runs already: it takes its place in any case
   */
  readonly run: (work: () => Promise<void>, isUnderWay?: boolean) => Promise<void>;
  /**
   * Lets no further deployment start, of any project. A running script goes on.
   *
   * @param onQuiet called once, when nothing runs
   * @returns a function that ends the hold
   */
  readonly holdAll: (hold: Hold, onQuiet: () => void) => () => void;
  /** The present holds, the oldest first. */
  readonly holds: () => readonly Hold[];
}

/** Why no deployment of any project starts. It lasts as long as the command that requested it. */
export interface Hold {
  readonly sinceMs: number;
  readonly reason: string;
  /** Who requested it, as the command reported, without proof. */
  readonly heldBy: string | null;
}

/**
 * Lets at most `mostRunning` projects run at once. If several wait, the one that has waited longest is next, so a project with
 * many pushes does not keep the others waiting.
 */
export function createTurns(mostRunning: number): Turns {
  let running = 0;
  /** In the order in which they came. */
  const waiting: (() => void)[] = [];
  const holds = new Map<Hold, () => void>();
  const mayRun = () => holds.size === 0 && running < mostRunning;

  function callNext(): void {
    while (mayRun() && waiting.length > 0) {
      running += 1;
      waiting.shift()?.();
    }
  }

  function callHolders(): void {
    if (running > 0) return;
    for (const [hold, onQuiet] of holds) {
      holds.set(hold, () => {});
      onQuiet();
    }
  }

  return {
    async run(work, isUnderWay = false) {
      // Who waits was called as soon as it was possible.
      if (isUnderWay || mayRun()) running += 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        await work();
      } finally {
        running -= 1;
        callHolders();
        callNext();
      }
    },
    holdAll(hold, onQuiet) {
      holds.set(hold, onQuiet);
      callHolders();
      return () => {
        if (holds.delete(hold)) callNext();
      };
    },
    holds: () => [...holds.keys()],
  };
}
