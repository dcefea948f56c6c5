import type { ProjectSettings } from "#config/project";
import type { Deployment } from "#deployments/deployment";
import {
  listReaders,
  nextReport,
  putReport,
  type Reader,
  removeReport,
  removeReportsBefore,
  type WaitingReport,
} from "#deployments/outbox";
import { findDeployment } from "#deployments/store";
import type { Log } from "#log";
import { atMost, pause } from "#platform/async";
import type { Store } from "#platform/sqlite";
import { sendCommitStatus } from "./commit-status.ts";
import { isFailure, isRecovery, type MessageSources, messageOf } from "./message.ts";
import { delivered, type SendOutcome } from "./outcome.ts";
import { sendToTarget } from "./targets.ts";

/** Reports what happens to deployments to those who want to know. Nothing here throws, and no deployment waits for it. */
export interface Notifications {
  /** Puts into the outbox that the script of a deployment was started. */
  readonly start: (store: Store, deployment: Deployment) => void;
  /** Delivers what waits in the outbox. */
  readonly wake: () => void;
  /** Resolves when nothing is being sent any more. Never rejects. */
  readonly ended: () => Promise<void>;
}

export interface NotificationOptions {
  /** The whole database. */
  readonly store: Store;
  /** How to reach a subscriber; null: the settings do not name it at the moment. */
  readonly findSend: (reader: Reader) => Send | null;
  /** Whether this instance may deliver: of several, one does. */
  readonly isLeader: () => boolean;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** The pause after the first failed attempt; each further one is twice as long. */
  readonly firstRetryMs?: number;
}

/** Sends a report to one subscriber. Rejects only if the database cannot be read. */
export type Send = (report: WaitingReport, signal: AbortSignal) => Promise<SendOutcome>;

const longestRetryMs = 15 * 60_000;
/** A report that could not be delivered for so long is given up. */
const longestWaitMs = 24 * 3_600_000;
/** Requests at a time. Each may hang for ten seconds. */
const mostSending = 8;

/**
 * Makes what delivers the reports of the outbox: to each subscriber one after the other, at least once. A report leaves
 * the outbox when it was taken, when it was refused for good, or after a day.
 */
export function createNotifications(options: NotificationOptions): Notifications {
  const { store, findSend, isLeader, log, stopping, firstRetryMs = 5_000 } = options;
  const inTurn = atMost(mostSending);
  const working = new Map<string, Promise<void>>();

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
      const outcome = await inTurn(() => send(waiting, stopping));
      if (stopping.aborted && outcome.kind !== "delivered") return;
      if (outcome.kind === "failed") {
        const waitMs = Math.min(Math.max(retryMs, outcome.waitMs ?? 0), longestRetryMs);
        logOutcome(log, waiting, outcome, waitMs);
        await pause(waitMs, stopping);
        retryMs = Math.min(2 * retryMs, longestRetryMs);
        giveUpOld();
      } else {
        if (outcome.kind === "refused") logOutcome(log, waiting, outcome, null);
        removeReport(store, waiting.id);
        retryMs = firstRetryMs;
      }
    }
  }

  function giveUpOld(): void {
    const subscribers = removeReportsBefore(store, Date.now() - longestWaitMs);
    if (subscribers.length === 0) return;
    const names = [...new Set(subscribers)];
    const text = `Reports that could not be delivered for a day are given up: ${subscribers.length}, to ${names.join(", ")}`;
    log.error({ event: "notifications.given_up", count: subscribers.length }, text);
  }

  function logFault(error: unknown): void {
    log.error({ event: "notifications.failed", err: error }, "The outbox could not be read or written");
  }

  function wake(): void {
    if (stopping.aborted || !isLeader()) return;
    try {
      giveUpOld();
      for (const reader of listReaders(store)) if (findSend(reader) !== null) begin(reader);
    } catch (error) {
      logFault(error);
    }
  }

  return {
    wake,
    start(view, deployment) {
      // A fault of the database must not end a deployment.
      try {
        // What was found out about its commit since it was claimed is on record.
        const started = findDeployment(view, deployment.id) ?? deployment;
        view.transaction(() => putReport(view, "started", started));
      } catch (error) {
        logFault(error);
      }
      wake();
    },
    async ended() {
      await Promise.all(working.values());
    },
  };
}

type SubscriberSettings = Pick<ProjectSettings, "notify" | "commitStatus">;

export interface NotifiedProject extends Omit<MessageSources, "pageUrl"> {
  /** As they are now. */
  readonly settings: SubscriberSettings;
}

const commitStatusName = "commit status";

/** How to reach a subscriber of a project; null: its settings do not name it at the moment. */
export function senderTo(project: NotifiedProject, subscriber: string, pageUrl: URL | null): Send | null {
  const { notify, commitStatus } = project.settings;
  const messageFor = ({ report }: WaitingReport) => messageOf(report, { ...project, pageUrl });
  if (subscriber === commitStatusName && commitStatus !== null)
    return (waiting, signal) => sendCommitStatus(commitStatus, messageFor(waiting), signal);
  const target = notify.targets.find(({ name }) => name === subscriber);
  if (target === undefined) return null;
  return async (waiting, signal) => {
    const message = messageFor(waiting);
    const isWanted = notify.on === "all" || isFailure(message) || isRecovery(message);
    return isWanted ? await sendToTarget(target, message, signal) : delivered;
  };
}

/** Those whom the settings of a project name for reports. */
export function subscribersOf({ notify, commitStatus }: SubscriberSettings): readonly string[] {
  const targets = notify.targets.map(({ name }) => name);
  return commitStatus ? [commitStatusName, ...targets] : targets;
}

function logOutcome(
  log: Log,
  { project, subscriber, report }: WaitingReport,
  { fault }: Exclude<SendOutcome, { kind: "delivered" }>,
  waitMs: number | null,
): void {
  const { id } = report.deployment;
  const fields = { event: "notifications.not_delivered", project, subscriber, deployment: id };
  const next = waitMs === null ? "It is given up" : `Trying again in ${Math.ceil(waitMs / 1_000)} s`;
  log.warn(fields, `A report on deployment ${id} was not taken by ${subscriber}: ${fault}. ${next}`);
}
