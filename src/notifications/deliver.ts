import {
  listReaders,
  nextReport,
  removeOldReports,
  removeReport,
  type WaitingReport,
} from "#deployments/outbox";
import type { Log } from "#log";
import { atMost, pause } from "#platform/async";
import type { Store } from "#platform/sqlite";
import { failure, type SendOutcome } from "./outcome.ts";

/** Sends a report to one subscriber. */
export type Send = (report: WaitingReport, signal: AbortSignal) => Promise<SendOutcome>;

export interface DeliveryOptions {
  readonly store: Store;
  /** How to reach a subscriber; null: the settings do not name it at the moment. */
  readonly findSend: (reader: Reader) => Send | null;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** The pause after the first failed attempt; each further one is twice as long. */
  readonly firstRetryMs?: number;
}

export interface OutboxDelivery {
  /** Delivers what waits. Never throws. */
  readonly wake: () => void;
  /** Resolves when nothing is being sent any more. Never rejects. */
  readonly ended: () => Promise<void>;
}

type Reader = Pick<WaitingReport, "project" | "subscriber">;

const longestRetryMs = 15 * 60_000;
/** A report that could not be delivered for so long is given up. */
const longestWaitMs = 24 * 3_600_000;
/** Requests at a time. Each may hang for ten seconds. */
const mostSending = 8;

/**
 * Makes what delivers the reports of the outbox: to each subscriber one after the other, at least once. A report leaves
 * the outbox when it was taken, when it was refused for good, or after a day.
 */
export function createDelivery(options: DeliveryOptions): OutboxDelivery {
  const { store, findSend, log, stopping, firstRetryMs = 5_000 } = options;
  const inTurn = atMost(mostSending);
  const working = new Map<string, Promise<void>>();

  function wake(): void {
    if (stopping.aborted) return;
    try {
      giveUpOld(store, log);
      for (const reader of listReaders(store)) if (findSend(reader) !== null) begin(reader);
    } catch (error) {
      logFault(error);
    }
  }

  function begin(reader: Reader): void {
    const key = `${reader.project} ${reader.subscriber}`;
    if (working.has(key)) return;
    const work = deliverTo(reader)
      .catch(logFault)
      .finally(() => working.delete(key));
    working.set(key, work);
  }

  async function deliverTo(reader: Reader): Promise<void> {
    let retryMs = firstRetryMs;
    while (!stopping.aborted) {
      const waiting = nextReport(store, reader);
      const send = findSend(reader);
      if (waiting === null || send === null) return;
      const outcome = await inTurn(() => attempt(send, waiting));
      if (stopping.aborted && outcome.kind !== "delivered") return;
      if (outcome.kind === "failed") {
        const waitMs = Math.min(Math.max(retryMs, outcome.waitMs ?? 0), longestRetryMs);
        logOutcome(log, waiting, outcome, waitMs);
        await pause(waitMs, stopping);
        retryMs = Math.min(2 * retryMs, longestRetryMs);
        giveUpOld(store, log);
      } else {
        if (outcome.kind === "refused") logOutcome(log, waiting, outcome, null);
        removeReport(store, waiting.id);
        retryMs = firstRetryMs;
      }
    }
  }

  async function attempt(send: Send, waiting: WaitingReport): Promise<SendOutcome> {
    try {
      return await send(waiting, stopping);
    } catch (error) {
      return failure(error);
    }
  }

  function logFault(error: unknown): void {
    log.error({ event: "notifications.failed", err: error }, "The outbox could not be read or written");
  }

  return {
    wake,
    async ended() {
      await Promise.all(working.values());
    },
  };
}

function logOutcome(
  log: Log,
  { project, subscriber, deploymentId }: WaitingReport,
  { fault }: Exclude<SendOutcome, { kind: "delivered" }>,
  waitMs: number | null,
): void {
  const fields = { event: "notifications.not_delivered", project, subscriber, deployment: deploymentId };
  const next = waitMs === null ? "It is given up" : `Trying again in ${Math.ceil(waitMs / 1_000)} s`;
  log.warn(
    fields,
    `A report on deployment ${deploymentId} was not taken by ${subscriber}: ${fault}. ${next}`,
  );
}

function giveUpOld(store: Store, log: Log): void {
  for (const { project, subscriber, count } of removeOldReports(store, Date.now() - longestWaitMs)) {
    const fields = { event: "notifications.given_up", project, subscriber, count };
    const text = `Reports that could not be delivered to ${subscriber} for a day are given up: ${count}`;
    log.error(fields, text);
  }
}
