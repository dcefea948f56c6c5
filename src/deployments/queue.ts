import type { Log } from "../log.ts";
import type { Store } from "../platform/sqlite/store.ts";
import type { Push } from "../receiver/push.ts";
import { createAcceptor } from "./accept.ts";
import { cancelQueued } from "./cancel.ts";
import type { ReadSource } from "./checked-out.ts";
import type { Deployment, RolloutExchange, Runner } from "./deployment.ts";
import { createExecutor } from "./execute.ts";
import { findRunning } from "./history.ts";
import type { DeploymentRequest, RecordedPush } from "./record.ts";
import { recover } from "./recovery.ts";
import { createPersist } from "./retry.ts";
import { claimNext } from "./states.ts";
import { createTurns, type Turn } from "./turns.ts";

export interface Queue {
  /**
   * Records a push, and starts its deployment if nothing runs. Pushes that arrive together share one transaction, and so
   * one sync of the disk. Resolves after that.
   *
   * @param alongside runs in the same transaction
   */
  readonly accept: (push: Push, alongside?: () => void) => Promise<RecordedPush>;
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
  /** Reads what a run has checked out; without it nothing is known. */
  readonly readSource?: ReadSource;
  /** Without it, nothing is known of roll-outs. */
  readonly exchange?: RolloutExchange;
  /** Whether pushes may be forged: then they do not supersede what was requested. */
  readonly distrustsPushes?: boolean;
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
  const { readSource = async () => null, exchange = noExchange } = options;
  const { makeTurn = createTurns(1).make, distrustsPushes = false } = options;
  const turn = makeTurn(wake);
  const controller = new AbortController();
  const stopping = controller.signal;
  const shared = { store, runner, persist: createPersist(store, { log, signal: stopping }), log, stopping };
  const executor = createExecutor({
    ...shared,
    readSource,
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
      if (isHeld() || !hasQueued(store)) {
        turn.leave();
        return;
      }
      const claimed = turn.claim(() => store.transaction(() => claimNext(store)));
      if (claimed) occupy(() => executor.execute(claimed));
    } catch (error) {
      turn.leave();
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
    }
  }

  const acceptor = createAcceptor({
    ...{ store, onChange, distrustsPushes, log },
    claim: () => (mayStart() ? turn.claim(() => claimNext(store)) : null),
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

function hasQueued(store: Store): boolean {
  const sql = "SELECT 1 FROM deployments WHERE project = $project AND state = 'queued' LIMIT 1";
  return store.get(sql) !== undefined;
}
