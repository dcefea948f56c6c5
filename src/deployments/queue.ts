import type { Log } from "../log.ts";
import { type Accept, createAccept } from "./accept.ts";
import { cancelQueued } from "./cancel.ts";
import { type Carrier, createCarrier } from "./carry-out.ts";
import { claimNext } from "./claim.ts";
import type { Runner } from "./deployment.ts";
import { logCancelled, logSuperseded } from "./deployment-log.ts";
import { createPersist } from "./persist.ts";
import { recover } from "./recovery.ts";
import type { ReadSource } from "./source.ts";
import type { Store } from "./store.ts";

export interface Queue {
  readonly accept: Accept;
  /** Takes over as the one that runs: first what was left behind, then what is queued. */
  readonly takeOver: () => void;
  /** Looks whether something is queued, as when another instance recorded it. */
  readonly wake: () => void;
  /**
   * Ends a deployment as its time-out would, or takes it out of the queue; its state is `cancelled` in the end.
   *
   * @param by who asked for it, as the command reported
   * @returns false where it neither runs here nor waits
   */
  readonly cancel: (deploymentId: number, by?: string | null) => boolean;
  /** Whether a deployment runs here, or what was left behind is dealt with. */
  readonly isBusy: () => boolean;
  /** Starts nothing more; lets the running deployment go on for `graceMs`, then interrupts it. */
  readonly stop: (graceMs: number) => Promise<void>;
}

export interface QueueOptions {
  readonly store: Store;
  readonly runner: Runner;
  /** Whether this instance is to go as soon as nothing runs here: then it starts nothing more. */
  readonly isReplaced?: () => boolean;
  /** Told of each deployment whose state was changed here, once that is on disk. */
  readonly onChange?: (deploymentId: number) => void;
  /** Reads what a run has checked out; nothing is known without it. */
  readonly readSource?: ReadSource;
  readonly log: Log;
}

const lookIntervalMs = 1_000;

/** Whose turn it is. */
interface Turn extends Required<Omit<QueueOptions, "readSource">> {
  readonly carrier: Carrier;
  mode: "recording" | "idle" | "busy" | "stopping";
  /** All that `stop` has to wait for. */
  work: Promise<void>;
}

/**
 * Runs deployments one at a time, in the order in which they were queued. That there is only one is seen to three
 * times: here, by the database, and by the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, runner, isReplaced = () => false, onChange = () => {}, log } = options;
  const { readSource = async () => null } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const persist = createPersist(store, { log, signal });
  const carrier = createCarrier({ store, runner, persist, readSource, onChange, log, stopping: signal });
  const turn: Turn = {
    ...{ store, runner, isReplaced, onChange, log, carrier },
    mode: "recording",
    work: Promise.resolve(),
  };
  let lookTimer: NodeJS.Timeout | undefined;
  return {
    accept: acceptInTurn(turn),
    wake: () => wake(turn),
    cancel: (id, by = null) => carrier.cancel(id, by) || cancelWaiting(turn, id, by),
    isBusy: () => turn.mode === "busy",
    takeOver() {
      occupy(turn, () => recover({ store, runner, log, signal, persist, ...carrier }));
      lookTimer = setInterval(wake, lookIntervalMs, turn).unref();
    },
    async stop(graceMs) {
      turn.mode = "stopping";
      stopping.abort();
      clearInterval(lookTimer);
      const timer = setTimeout(carrier.interrupt, graceMs);
      await turn.work;
      clearTimeout(timer);
    },
  };
}

function acceptInTurn(turn: Turn): Accept {
  const { store, carrier, onChange, log } = turn;
  return createAccept({
    store,
    claim: () => (turn.mode === "idle" && mayStart(turn) ? claimNext(store) : null),
    begin: (claimed) => occupy(turn, () => carrier.carryOut(claimed)),
    onSuperseded(id, by) {
      logSuperseded(log, id, by);
      onChange(id);
    },
  });
}

/** Where that cannot be read, for want of a descriptor, a push is recorded all the same, and `wake` asks again. */
function mayStart({ isReplaced }: Turn): boolean {
  try {
    return !isReplaced();
  } catch {
    return false;
  }
}

/** Nothing else starts until `task` is done. */
function occupy(turn: Turn, task: () => Promise<void>): void {
  turn.mode = "busy";
  turn.work = task().then(() => {
    turn.carrier.release();
    if (turn.mode !== "busy") return;
    turn.mode = "idle";
    wake(turn);
  });
}

function wake(turn: Turn): void {
  const { store, carrier, isReplaced, log } = turn;
  if (turn.mode !== "idle") return;
  try {
    if (isReplaced()) return;
    const claimed = store.transaction(() => claimNext(store));
    if (claimed) occupy(turn, () => carrier.carryOut(claimed));
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
  }
}

function cancelWaiting({ store, log, onChange }: Turn, id: number, by: string | null): boolean {
  const wasWaiting = store.transaction(() => cancelQueued(store, id, by));
  if (wasWaiting) {
    logCancelled(log, id);
    onChange(id);
  }
  return wasWaiting;
}
