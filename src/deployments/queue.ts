import { formatDuration } from "../config/duration.ts";
import type { Log } from "../log.ts";
import { type Accept, createAccept } from "./accept.ts";
import { askToCancel, cancelGraceMs, cancelQueued } from "./cancel.ts";
import { claimNext, putBack } from "./claim.ts";
import type { Deployment, Ending, Run, Runner } from "./deployment.ts";
import { logCancelled, logEnding, logStart, logSuperseded } from "./deployment-log.ts";
import { pause } from "./pause.ts";
import { createPersist } from "./persist.ts";
import { recordEnding } from "./record-ending.ts";
import { recover } from "./recovery.ts";
import { pruneHistory } from "./retention.ts";
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
   * @returns false where it neither runs here nor waits
   */
  readonly cancel: (deploymentId: number) => boolean;
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
  readonly log: Log;
}

const lookIntervalMs = 1_000;
const firstStartRetryMs = 1_000;
const longestStartRetryMs = 60_000;
/** How long an interrupted script may take to end by itself before it is forced to. */
const interruptGraceMs = 2_000;

/**
 * Runs deployments one at a time, in the order in which they were queued. That there is only one is seen to three
 * times: here, by the database, and by the lock that a running script holds.
 */
export function createQueue(options: QueueOptions): Queue {
  const { store, runner, isReplaced = () => false, onChange = () => {}, log } = options;
  let mode: "recording" | "idle" | "busy" | "stopping" = "recording";
  let work: Promise<void> = Promise.resolve();
  let run: Run | null = null;
  let current: number | null = null;
  let cancelled: number | null = null;
  let isInterrupting = false;
  let startRetryMs = firstStartRetryMs;
  let lookTimer: NodeJS.Timeout | null = null;
  const stopping = new AbortController();
  const persist = createPersist(store, { log, signal: stopping.signal });

  /** Nothing else starts until `task` is done; it is all that `stop` has to wait for. */
  function occupy(task: () => Promise<void>): void {
    mode = "busy";
    work = task().then(() => {
      run = null;
      current = null;
      cancelled = null;
      if (mode !== "busy") return;
      mode = "idle";
      wake();
    });
  }

  function wake(): void {
    if (mode !== "idle") return;
    try {
      if (isReplaced()) return;
      const claimed = store.transaction(() => claimNext(store));
      if (claimed) occupy(() => carryOut(claimed));
    } catch (error) {
      log.error({ event: "store.failed", err: error }, "The queue could not be read; trying again in 1 s");
    }
  }

  /** Where that cannot be read, for want of a descriptor, a push is recorded all the same, and `wake` asks again. */
  function mayStart(): boolean {
    try {
      return !isReplaced();
    } catch {
      return false;
    }
  }

  async function carryOut(deployment: Deployment): Promise<void> {
    current = deployment.id;
    onChange(deployment.id);
    const start = await runner.start(deployment);
    switch (start.kind) {
      case "started":
        logStart(log, deployment);
        return await seeThrough(deployment, start.run);
      case "refused":
        return await conclude(deployment, { state: "failed", exitCode: null, problem: start.problem });
      case "try-again":
        return await tryLater(deployment, start.detail);
    }
  }

  async function seeThrough(deployment: Deployment, started: Run): Promise<void> {
    run = started;
    current = deployment.id;
    if (cancelled === deployment.id) run.end("cancelled", cancelGraceMs);
    if (isInterrupting) run.end("interrupted", interruptGraceMs);
    const ending = await run.ended;
    if (ending.state === "not_started") return await tryLater(deployment, ending.detail);
    startRetryMs = firstStartRetryMs;
    await conclude(deployment, ending);
  }

  async function tryLater(deployment: Deployment, detail: string): Promise<void> {
    const fields = { event: "deployment.not_started", deployment: deployment.id };
    log.warn(fields, `${detail} Trying again in ${formatDuration(startRetryMs)}.`);
    runner.tidy(deployment.id);
    await persist(() => {
      putBack(store, deployment);
      if (cancelled === deployment.id) cancelQueued(store, deployment.id);
    });
    current = null;
    onChange(deployment.id);
    await pause(startRetryMs, stopping.signal);
    startRetryMs = Math.min(2 * startRetryMs, longestStartRetryMs);
  }

  async function conclude(deployment: Deployment, ending: Ending): Promise<void> {
    const recorded = await persist(() => {
      const how = { isCancelled: cancelled === deployment.id, doesResume: mode !== "stopping" };
      return recordEnding(store, deployment, ending, how);
    });
    // Who cancels it from now on finds it in the queue, if at all.
    current = null;
    logEnding(log, deployment, recorded ?? ending);
    onChange(deployment.id);
    runner.tidy(deployment.id);
    await persist(() => pruneHistory(store));
  }

  return {
    accept: createAccept({
      store,
      claim: () => (mode === "idle" && mayStart() ? claimNext(store) : null),
      begin: (claimed) => occupy(() => carryOut(claimed)),
      onSuperseded(id, by) {
        logSuperseded(log, id, by);
        onChange(id);
      },
    }),
    wake,
    cancel(id) {
      if (current === id) {
        askToCancel(store, id, log);
        cancelled = id;
        run?.end("cancelled", cancelGraceMs);
        return true;
      }
      const wasWaiting = store.transaction(() => cancelQueued(store, id));
      if (wasWaiting) {
        logCancelled(log, id);
        onChange(id);
      }
      return wasWaiting;
    },
    isBusy: () => mode === "busy",
    takeOver() {
      occupy(() => recover({ store, runner, log, signal: stopping.signal, persist, seeThrough, conclude }));
      lookTimer = setInterval(wake, lookIntervalMs).unref();
    },
    async stop(graceMs) {
      mode = "stopping";
      stopping.abort();
      if (lookTimer) clearInterval(lookTimer);
      const timer = setTimeout(() => {
        isInterrupting = true;
        run?.end("interrupted", interruptGraceMs);
      }, graceMs);
      await work;
      clearTimeout(timer);
    },
  };
}
