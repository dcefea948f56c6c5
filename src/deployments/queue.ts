import type { Log } from "../log.ts";
import type { Push } from "../receiver/push.ts";
import { cancelQueued } from "./cancel.ts";
import type { Deployment, Runner } from "./deployment.ts";
import { claimNext, logSuperseded } from "./enqueue.ts";
import { createExecutor, type Executor } from "./execute.ts";
import type { ReadSource } from "./progress.ts";
import { type RecordedPush, recordPush } from "./record.ts";
import { recover } from "./recovery.ts";
import { createPersist } from "./retry.ts";
import type { Store } from "./store.ts";

export interface Queue {
  /**
   * Records a push, and starts its deployment if nothing runs. Pushes that arrive together share one transaction, and so
   * one sync of the disk. Resolves after that.
   */
  readonly accept: (push: Push) => Promise<RecordedPush>;
  /** Starts to run deployments: first what an earlier service left behind, then what is queued. */
  readonly start: () => void;
  /** Checks whether something is queued, for example by another instance. */
  readonly wake: () => void;
  /**
   * Ends a running deployment as its time-out would, or removes it from the queue. Its final state is `cancelled`.
   *
   * @param by who requested it, as the command reported
   * @returns false if it neither runs here nor waits
   */
  readonly cancel: (deploymentId: number, by?: string | null) => boolean;
  /** Whether a deployment runs here, or the recovery. */
  readonly isBusy: () => boolean;
  /** Starts nothing more. Lets the running deployment go on for `graceMs`, then interrupts it. */
  readonly stop: (graceMs: number) => Promise<void>;
}

export interface QueueOptions {
  readonly store: Store;
  readonly runner: Runner;
  /** Whether a new container replaces this instance: then it starts nothing more. */
  readonly isReplaced?: () => boolean;
  /** Called for each deployment whose state was changed here, when that is on disk. */
  readonly onChange?: (deploymentId: number) => void;
  /** Reads what a run has checked out; without it nothing is known. */
  readonly readSource?: ReadSource;
  readonly log: Log;
}

const lookIntervalMs = 1_000;

interface QueueState extends Required<Omit<QueueOptions, "readSource">> {
  readonly executor: Executor;
  mode: "recording" | "idle" | "busy" | "stopping";
  /** What `stop` waits for. */
  work: Promise<void>;
}

/**
 * Runs deployments one at a time, in the order of the queue. Three things make sure that only one runs: this queue, the
 * database, and the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, runner, isReplaced = () => false, onChange = () => {}, log } = options;
  const { readSource = async () => null } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const persist = createPersist(store, { log, signal });
  const executor = createExecutor({ store, runner, persist, readSource, onChange, log, stopping: signal });
  const queue: QueueState = {
    ...{ store, runner, isReplaced, onChange, log, executor },
    mode: "recording",
    work: Promise.resolve(),
  };
  let lookTimer: NodeJS.Timeout | undefined;
  return {
    accept: createAccept(queue),
    wake: () => wake(queue),
    cancel: (id, by = null) => executor.cancel(id, by) || cancelWaiting(queue, id, by),
    isBusy: () => queue.mode === "busy",
    start() {
      occupy(queue, () => recover({ store, runner, log, signal, persist, executor }));
      lookTimer = setInterval(wake, lookIntervalMs, queue).unref();
    },
    async stop(graceMs) {
      queue.mode = "stopping";
      stopping.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(executor.interrupt, graceMs);
      await queue.work;
      clearTimeout(timer);
    },
  };
}

interface WaitingPush {
  readonly push: Push;
  readonly resolve: (recorded: RecordedPush) => void;
  readonly reject: (error: unknown) => void;
}

function createAccept(queue: QueueState): Queue["accept"] {
  let waiting: WaitingPush[] = [];

  function flush(): void {
    const batch = waiting;
    waiting = [];
    try {
      acceptBatch(queue, batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return (push) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ push, resolve, reject });
    });
}

/** Records pushes and, if nothing runs, claims the next deployment in the same transaction. */
function acceptBatch(queue: QueueState, batch: readonly WaitingPush[]): void {
  const { store, log, onChange } = queue;
  const superseded: [number, number][] = [];
  const { recorded, claimed } = store.transaction(() => ({
    recorded: batch.map(({ push }) => recordPush(store, push, (id, by) => superseded.push([id, by]))),
    claimed: queue.mode === "idle" && mayStart(queue) ? claimNext(store) : null,
  }));
  batch.forEach(({ resolve }, index) => {
    resolve(asClaimed(recorded[index] as RecordedPush, claimed));
  });
  for (const [id, by] of superseded) {
    logSuperseded(log, id, by);
    onChange(id);
  }
  if (claimed) execute(queue, claimed);
}

/** The sender gets the state `running` if the deployment was claimed in the same moment. */
function asClaimed(recorded: RecordedPush, claimed: Deployment | null): RecordedPush {
  if (recorded.deployment.id !== claimed?.id) return recorded;
  return { ...recorded, deployment: { ...recorded.deployment, state: "running" } };
}

/** If that cannot be read, for lack of a descriptor, the push is recorded all the same, and `wake` checks again. */
function mayStart({ isReplaced }: QueueState): boolean {
  try {
    return !isReplaced();
  } catch {
    return false;
  }
}

function execute(queue: QueueState, claimed: Deployment): void {
  occupy(queue, () => queue.executor.execute(claimed));
}

/** Nothing else starts until `task` is done. */
function occupy(queue: QueueState, task: () => Promise<void>): void {
  queue.mode = "busy";
  queue.work = task().then(() => {
    queue.executor.release();
    if (queue.mode !== "busy") return;
    queue.mode = "idle";
    wake(queue);
  });
}

function wake(queue: QueueState): void {
  const { store, isReplaced, log } = queue;
  if (queue.mode !== "idle") return;
  try {
    if (isReplaced()) return;
    const claimed = store.transaction(() => claimNext(store));
    if (claimed) execute(queue, claimed);
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
  }
}

function cancelWaiting({ store, log, onChange }: QueueState, id: number, by: string | null): boolean {
  const wasWaiting = store.transaction(() => cancelQueued(store, id, by));
  if (!wasWaiting) return false;
  log.info({ event: "deployment.cancelled", deployment: id }, `Deployment ${id} was cancelled in the queue`);
  onChange(id);
  return true;
}
