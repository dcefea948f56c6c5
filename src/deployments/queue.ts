import type { Log } from "#log";
import { createLogThrottle } from "#platform/async";
import type { Store } from "#platform/sqlite";
import type { Deployment, RolloutExchange, Runner } from "./deployment.ts";
import { cancelQueued, createExecutor, createPersist } from "./execute.ts";
import { findRunning } from "./history.ts";
import { findPause } from "./pauses.ts";
import type { Push, PushRecord } from "./push.ts";
import { type DeploymentRequest, type OnSuperseded, recordPush, recordRequest } from "./record.ts";
import { recover } from "./recovery.ts";
import { claimNext } from "./states.ts";

export interface Queue {
  /**
   * Records a push, and starts its deployment if nothing runs. Pushes that arrive together share one transaction, and so
   * one sync of the disk. Resolves after that.
   *
   * @param alongside runs in the same transaction
   */
  readonly accept: (push: Push, alongside?: () => void) => Promise<PushRecord>;
  /** Starts to run deployments: first what an earlier service left behind, then what is queued. */
  readonly start: () => void;
  /** Records a deployment that no push asked for, as `accept` does. @throws if it cannot be written to disk */
  readonly request: (request: DeploymentRequest) => Deployment;
  /** Checks whether something is queued, for example by another instance. */
  readonly wake: () => void;
  /**
   * Ends a running deployment as its time-out would, or removes it from the queue. Its final state is `cancelled`.
   *
   * @param by who requested it, as the command reported
   * @returns false if it neither runs here nor waits
   */
  readonly cancel: (deploymentId: number, by?: string | null) => boolean;
  /** The running deployment whose new version is live and only watched, or null. */
  readonly findGuarded: () => Deployment | null;
  /** Has that deployment go back to the version before; then it fails. @throws the system's error */
  readonly goBack: (deploymentId: number) => void;
  /** Whether a deployment runs here, or the recovery. */
  readonly isBusy: () => boolean;
  /** Starts nothing more. Lets the running deployment go on for `graceMs`, then interrupts it. */
  readonly stop: (graceMs: number) => Promise<void>;
}

export interface QueueOptions {
  readonly store: Store;
  readonly runner: Runner;
  /** Whether nothing more may be started here: the project was removed. */
  readonly isHeld?: () => boolean;
  /** Makes the right to run, which projects share. Without it there is only this one. */
  readonly makeTurn?: (onFree: () => void) => Turn;
  /** Called for each deployment whose state was changed here, when that is on disk. */
  readonly onChange?: (deploymentId: number) => void;
  /** Called when the script of a deployment was started. */
  readonly onStart?: (deployment: Deployment) => void;
  /** Without it, nothing is known of roll-outs. */
  readonly exchange?: RolloutExchange;
  /** The deployments that are not to be started yet. */
  readonly resting?: () => readonly number[];
  readonly log: Log;
}

const lookIntervalMs = 1_000;
const noExchange: RolloutExchange = {
  read: () => ({ liveAtMs: null, requests: null, isGuarding: false }),
  order: () => {},
  tidy: () => {},
};

/**
 * Runs the deployments of a project one at a time, in the order of the queue. Three things make sure that only one runs:
 * this queue, the database, and the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, runner, isHeld = () => false, onChange = () => {}, onStart = () => {}, log } = options;
  const { exchange = noExchange, makeTurn = createTurns(1).make, resting = () => [] } = options;
  const turn = makeTurn(wake);
  const controller = new AbortController();
  const stopping = controller.signal;
  const shared = { store, runner, persist: createPersist(store, { log, signal: stopping }), log, stopping };
  const executor = createExecutor({
    ...shared,
    exchange,
    onGuard,
    onChange,
    onStart,
    onIdle: turn.leave,
  });
  let mode: "recording" | "idle" | "busy" | "stopping" = "recording";
  /** What `stop` waits for. */
  let work: Promise<void> = Promise.resolve();
  let lookTimer: NodeJS.Timeout | undefined;

  /** Other projects may run meanwhile. */
  function onGuard(isGuarding: boolean): void {
    if (isGuarding) turn.rest();
    else turn.hold();
  }

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
      if (isHeld() || !hasQueued(store, resting())) {
        turn.leave();
        return;
      }
      const claimed = turn.claim(() => store.transaction(() => claimNext(store, resting())));
      if (claimed) occupy(() => executor.execute(claimed));
    } catch (error) {
      turn.leave();
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
    }
  }

  const acceptor = createAcceptor({
    ...{ store, onChange, log },
    claim: () => (mayStart() ? turn.claim(() => claimNext(store, resting())) : null),
    onClaimed: (claimed) => occupy(() => executor.execute(claimed)),
    onUndone() {
      if (mode !== "busy") turn.leave();
    },
  });

  /** If that cannot be read, for lack of a descriptor, the push is still recorded, and `wake` checks again. */
  function mayStart(): boolean {
    try {
      return mode === "idle" && !isHeld();
    } catch {
      return false;
    }
  }

  function cancelWaiting(id: number, by: string | null): boolean {
    if (!store.transaction(() => cancelQueued(store, id, by))) return false;
    log.info(
      { event: "deployment.cancelled", deployment: id },
      `Deployment ${id} was cancelled in the queue`,
    );
    onChange(id);
    return true;
  }

  return {
    ...acceptor,
    wake,
    cancel: (id, by = null) => executor.cancel(id, by) || cancelWaiting(id, by),
    findGuarded() {
      const running = findRunning(store);
      return running !== null && exchange.read(running.id).isGuarding ? running : null;
    },
    goBack: (id) => exchange.order(id, "back"),
    isBusy: () => mode === "busy",
    start() {
      occupy(() => recover({ ...shared, executor }));
      lookTimer = setInterval(wake, lookIntervalMs).unref();
    },
    async stop(graceMs) {
      mode = "stopping";
      controller.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(executor.interrupt, graceMs);
      await work;
      clearTimeout(timer);
    },
  };
}

function hasQueued(store: Store, resting: readonly number[]): boolean {
  const sql = `SELECT 1 FROM deployments WHERE project = $project AND state = 'queued'
    AND id NOT IN (SELECT value FROM json_each(?)) LIMIT 1`;
  return store.get(sql, JSON.stringify(resting)) !== undefined;
}

/** Puts deployments into the queue of a project, and claims the next one in the same transaction if nothing runs. */
interface Acceptor {
  /** As of the queue. */
  readonly accept: (push: Push, alongside?: () => void) => Promise<PushRecord>;
  /** As of the queue. */
  readonly request: (request: DeploymentRequest) => Deployment;
}

interface AcceptorOptions {
  readonly store: Store;
  /** Claims the next deployment, if one may start. Called in the transaction. */
  readonly claim: () => Deployment | null;
  /** Called when the claim is on disk. */
  readonly onClaimed: (claimed: Deployment) => void;
  /** Called if it is not. */
  readonly onUndone: () => void;
  /** Called for each deployment that was superseded, when that is on disk. */
  readonly onChange: (deploymentId: number) => void;
  readonly log: Log;
}

/** No project is pushed to so often; a flood must not fill the disk with lines. */
const supersededPerMinute = 100;

interface WaitingPush {
  readonly push: Push;
  readonly alongside: (() => void) | undefined;
  readonly resolve: (recorded: PushRecord) => void;
  readonly reject: (error: unknown) => void;
}

interface AcceptorState extends AcceptorOptions {
  /** The pushes of this turn of the event loop. */
  waiting: WaitingPush[];
  readonly mayLogSuperseded: (key: null) => boolean;
}

/** Makes the part of a queue that records. */
function createAcceptor(options: AcceptorOptions): Acceptor {
  const { log } = options;
  const mayLogSuperseded = createLogThrottle<null>(supersededPerMinute, 60_000, (_, count) =>
    log.info({ event: "deployment.superseded_more", count }, `${count} more deployments were superseded`),
  );
  const state: AcceptorState = { ...options, waiting: [], mayLogSuperseded };
  return {
    accept: (push, alongside) =>
      new Promise((resolve, reject) => {
        state.waiting.push({ push, alongside, resolve, reject });
        if (state.waiting.length === 1) acceptWaiting(state).catch(reject);
      }),
    request: (request) => acceptRequest(state, request),
  };
}

async function acceptWaiting(state: AcceptorState): Promise<void> {
  let batch: readonly WaitingPush[] = [];
  const { work, onRecorded } = recording(state, (onSuperseded) => {
    batch = takeWaiting(state);
    return recordBatch(state, batch, onSuperseded);
  });
  try {
    const { result, claimed } = await state.store.batch(work);
    onRecorded(claimed);
    for (const [index, recorded] of result.entries()) batch[index]?.resolve(asClaimed(recorded, claimed));
  } catch (error) {
    state.onUndone();
    // If the work of another project failed before ours, ours has not begun.
    if (batch.length === 0) batch = takeWaiting(state);
    for (const { reject } of batch) reject(error);
  }
}

function takeWaiting(state: AcceptorState): readonly WaitingPush[] {
  const { waiting } = state;
  state.waiting = [];
  return waiting;
}

function recordBatch(
  { store }: AcceptorState,
  batch: readonly WaitingPush[],
  onSuperseded: OnSuperseded,
): readonly PushRecord[] {
  const isPaused = findPause(store) !== null;
  return batch.map(({ push, alongside }) => {
    const recorded = recordPush(store, push, onSuperseded);
    alongside?.();
    return isPaused ? withPause(recorded) : recorded;
  });
}

function acceptRequest(state: AcceptorState, request: DeploymentRequest): Deployment {
  const { store } = state;
  const { work, onRecorded } = recording(state, (onSuperseded) =>
    recordRequest(store, request, onSuperseded),
  );
  try {
    const { result, claimed } = store.transaction(work);
    onRecorded(claimed);
    return result;
  } catch (error) {
    state.onUndone();
    throw error;
  }
}

/** Makes the work that records something and claims the next deployment. Call `onRecorded` when that is on disk. */
function recording<Result>(state: AcceptorState, write: (onSuperseded: OnSuperseded) => Result) {
  const superseded: [number, number][] = [];
  const work = () => ({
    result: write((id, by) => superseded.push([id, by])),
    claimed: state.claim(),
  });
  const onRecorded = (claimed: Deployment | null) => {
    for (const [id, by] of superseded) {
      if (state.mayLogSuperseded(null)) logSuperseded(state.log, id, by);
      state.onChange(id);
    }
    if (claimed) state.onClaimed(claimed);
  };
  return { work, onRecorded };
}

/** The sender gets the state `running` if the deployment was claimed in the same moment. */
function asClaimed(recorded: PushRecord, claimed: Deployment | null): PushRecord {
  if (recorded.deployment.id !== claimed?.id) return recorded;
  return { ...recorded, deployment: { ...recorded.deployment, state: "running" } };
}

function withPause(recorded: PushRecord): PushRecord {
  if (recorded.kind !== "accepted" || recorded.deployment.state !== "queued") return recorded;
  const detail = "The queue of this project is paused. The push is recorded, and waits until hotpush resume.";
  return { ...recorded, detail };
}

function logSuperseded(log: Log, id: number, by: number): void {
  const fields = { event: "deployment.superseded", deployment: id, by };
  log.info(fields, `Deployment ${id} is superseded by ${by}, a newer push of the branch`);
}

/** The right of a project to run a deployment. */
export interface Turn {
  /** Runs `claim` if the right is free and nobody waits for it longer. Null if it is not free, or nothing was claimed. */
  readonly claim: <Claimed>(claim: () => Claimed | null) => Claimed | null;
  /** Takes the right in any case: for a script that runs already. */
  readonly hold: () => void;
  /** Lets others run, though a script of this one still watches what it has deployed. */
  readonly rest: () => void;
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
 * Lets at most `mostRunning` projects run at once. If several wait, the one whose last turn is longest ago is next, so a
 * project with many pushes does not keep the others waiting.
 */
export function createTurns(mostRunning: number): Turns {
  const running = new Set<Turn>();
  const resting = new Set<Turn>();
  const waiting = new Map<Turn, () => void>();
  const lastTurns = new Map<Turn, number>();
  const holds = new Map<Hold, () => void>();
  let count = 0;
  const lastOf = (turn: Turn) => lastTurns.get(turn) ?? 0;
  const mayRun = () => holds.size === 0 && running.size < mostRunning;

  function next(): Turn | null {
    const turns = [...waiting.keys()];
    return turns.reduce<Turn | null>(
      (best, turn) => (best && lastOf(best) <= lastOf(turn) ? best : turn),
      null,
    );
  }

  function callNext(): void {
    const turn = mayRun() ? next() : null;
    if (turn) setImmediate(() => waiting.get(turn)?.());
  }

  function callHolders(): void {
    if (running.size > 0 || resting.size > 0) return;
    for (const [hold, onQuiet] of holds) {
      holds.set(hold, () => {});
      onQuiet();
    }
  }

  function make(onFree: () => void): Turn {
    const turn: Turn = {
      claim(claim) {
        if (running.has(turn) || resting.has(turn)) return null;
        const first = next();
        const isNext = first === null || lastOf(turn) <= lastOf(first);
        if (!mayRun() || !isNext) {
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
        count += 1;
        lastTurns.set(turn, count);
        resting.delete(turn);
        running.add(turn);
      },
      rest() {
        running.delete(turn);
        resting.add(turn);
        callNext();
      },
      leave() {
        waiting.delete(turn);
        running.delete(turn);
        resting.delete(turn);
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
