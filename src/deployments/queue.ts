import { shortCommit } from "#deployments/push";
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
import { findRunning, pruneHistory } from "./history.ts";
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
  /** Makes the right to run, which projects share. */
  readonly makeTurn: (onFree: () => void) => Turn;
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
  const { store, runner, exchange, isHeld, onChange, onStart, makeTurn, askEveryMs, log } = options;
  const turn = makeTurn(wake);
  const stop = new AbortController();
  const stopping = stop.signal;
  const persist = <Result>(write: () => Result) => writeOnDisk(options, stopping, write);
  let mode: "recording" | "idle" | "busy" | "stopping" = "recording";
  /** What `stop` waits for. */
  let work: Promise<void> = Promise.resolve();
  let lookTimer: NodeJS.Timeout | undefined;
  let current: Current | null = null;
  let isInterrupting = false;
  let lastWaitReason: string | null = null;
  /** Of what waits for something else than its turn: when its last look began, and until when it rests, by a clock that never jumps. */
  const rests = new Map<number, Rest & { readonly lookedAtMs: number }>();
  let lookedAtMs = 0;
  let shortenedAtMs = Number.NEGATIVE_INFINITY;

  /** Nothing else starts until `task` is done. */
  function occupy(task: () => Promise<void>): void {
    mode = "busy";
    turn.hold();
    work = task().then(() => {
      turn.leave();
      if (mode !== "busy") return;
      mode = "idle";
      wake();
    });
  }

  function wake(): void {
    if (mode !== "idle") return;
    try {
      const resting = listResting();
      const isQueued = hasDeployment(store, isReady, JSON.stringify(resting));
      if (isHeld() || !isQueued) {
        turn.leave();
        return;
      }
      const claimed = turn.claim(() => store.transaction(() => claimNext(store, resting)));
      if (claimed) occupy(() => execute(claimed));
    } catch (error) {
      turn.leave();
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
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
    if (waitReason !== lastWaitReason) log.info(fields, `Deployment ${id} waits: ${waitReason}`);
    current = null;
    lastWaitReason = waitReason;
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

  async function record(deployment: Deployment, ending: Ending): Promise<void> {
    const { id } = deployment;
    const report = exchange.read(id);
    // One transaction: in between another instance may record a newer push, which supersedes an interrupted one.
    const recorded = await persist(() => {
      recordRollout(store, deployment, report);
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
    if (adoption.kind === "gone") return await record(deployment, diedWithService);
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
      occupy(recover);
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
      mode = "stopping";
      stop.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(() => {
        isInterrupting = true;
        current?.run?.end("interrupted", interruptGraceMs);
      }, graceMs);
      await work;
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
    detail: "deploy.sh ended with its Hotpush and left no exit code.",
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

/** The right of a project to run a deployment. */
export interface Turn {
  /** Runs `claim` if the right is free and nobody waits for it longer. Null if it is not free, or nothing was claimed. */
  readonly claim: <Claimed>(claim: () => Claimed | null) => Claimed | null;
  /** Takes the right in any case: for a script that runs already. */
  readonly hold: () => void;
  /** Gives the right back, or stops waiting for it. */
  readonly leave: () => void;
}

/** The turns of all projects of a service. */
export interface Turns {
  /** Makes the turn of a project; `onFree` is called when it may try again. */
  readonly make: (onFree: () => void) => Turn;
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
  const running = new Set<Turn>();
  /** In the order in which they came. */
  const waiting = new Map<Turn, () => void>();
  const holds = new Map<Hold, () => void>();
  const mayRun = () => holds.size === 0 && running.size < mostRunning;

  function callNext(): void {
    const [turn] = mayRun() ? waiting.keys() : [];
    if (turn) setImmediate(() => waiting.get(turn)?.());
  }

  function callHolders(): void {
    if (running.size > 0) return;
    for (const [hold, onQuiet] of holds) {
      holds.set(hold, () => {});
      onQuiet();
    }
  }

  function make(onFree: () => void): Turn {
    const turn: Turn = {
      claim(claim) {
        if (running.has(turn)) return null;
        const [first = turn] = waiting.keys();
        if (!mayRun() || first !== turn) {
          waiting.set(turn, onFree);
          return null;
        }
        const claimed = claim();
        waiting.delete(turn);
        if (claimed === null) callNext();
        else turn.hold();
        return claimed;
      },
      hold() {
        running.add(turn);
      },
      leave() {
        waiting.delete(turn);
        running.delete(turn);
        callHolders();
        callNext();
      },
    };
    return turn;
  }

  return {
    make,
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
