import type { ProjectSettings } from "#config/project";
import type { Deployment } from "#deployments/deployment";
import { reportStart, type Subscriber, type WaitingReport } from "#deployments/outbox";
import { findDeployment } from "#deployments/store";
import type { Log } from "#log";
import type { Store } from "#platform/sqlite";
import { sendCommitStatus } from "./commit-status.ts";
import { createDelivery, type Send } from "./deliver.ts";
import { isFailure, isRecovery, messageOf } from "./message.ts";
import { delivered } from "./outcome.ts";
import { sendToTarget } from "./targets.ts";

/** Reports what happens to deployments to those who want to know. Nothing here throws, and no deployment waits for it. */
export interface Notifications {
  /** Puts into the outbox that the script of a deployment was started. */
  readonly start: (store: Store, deployment: Deployment) => void;
  /** Delivers what waits in the outbox. */
  readonly wake: () => void;
  /** Resolves when nothing is being sent any more. */
  readonly ended: () => Promise<void>;
}

type SubscriberSettings = Pick<ProjectSettings, "notify" | "commitStatus">;

export interface NotificationOptions {
  /** The whole database. */
  readonly store: Store;
  readonly log: Log;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** Whether this instance may deliver: of several, one does. */
  readonly isLeader: () => boolean;
  readonly pageUrl: URL | null;
  /** A project as its settings are now; null: there is none of that name. */
  readonly findProject: (name: string) => NotifiedProject | null;
}

export interface NotifiedProject {
  /** The project's view of the database. */
  readonly store: Store;
  /** The directory of its logs. */
  readonly statePath: string;
  readonly settings: SubscriberSettings;
}

const commitStatusName = "commit status";

export function createNotifications(options: NotificationOptions): Notifications {
  const { store, log, stopping, isLeader, findProject, pageUrl } = options;
  const delivery = createDelivery({ store, log, stopping, findSend });

  /** How to reach a subscriber; null: the settings do not name it at the moment. */
  function findSend({
    project: name,
    subscriber,
  }: Pick<WaitingReport, "project" | "subscriber">): Send | null {
    const project = findProject(name);
    if (project === null) return null;
    const { notify, commitStatus } = project.settings;
    const messageFor = ({ report }: WaitingReport) => messageOf(report, { ...project, pageUrl });
    if (subscriber === commitStatusName) {
      if (commitStatus === null) return null;
      return (waiting, signal) => sendCommitStatus(commitStatus, messageFor(waiting), signal);
    }
    const target = notify.targets.find((one) => one.name === subscriber);
    if (target === undefined) return null;
    return async (waiting, signal) => {
      const message = messageFor(waiting);
      const isWanted = notify.on === "all" || isFailure(message) || isRecovery(message);
      return isWanted ? await sendToTarget(target, message, signal) : delivered;
    };
  }

  /** A fault of the database must not end a deployment. */
  function guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      log.error({ event: "notifications.failed", err: error }, "The outbox could not be read or written");
    }
  }

  function wake(): void {
    guarded(() => {
      if (isLeader() && !stopping.aborted) delivery.wake();
    });
  }

  return {
    wake,
    start(view, deployment) {
      guarded(() => {
        if (!wantsStarts(view)) return;
        // What was found out about its commit since it was claimed is on record.
        const started = findDeployment(view, deployment.id) ?? deployment;
        view.transaction(() => reportStart(view, started));
        wake();
      });
    },
    ended: delivery.ended,
  };
}

/** Those whom the settings of a project name for reports. */
export function subscribersOf({ notify, commitStatus }: SubscriberSettings): readonly Subscriber[] {
  const targets = notify.targets.map(({ name }) => ({ name, wantsStarts: notify.on === "all" }));
  return [...(commitStatus ? [{ name: commitStatusName, wantsStarts: true }] : []), ...targets];
}

function wantsStarts(store: Store): boolean {
  const sql = "SELECT 1 FROM subscribers WHERE project = $project AND wants_starts LIMIT 1";
  return store.get(sql) !== undefined;
}
