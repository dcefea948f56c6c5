import type { ProjectSettings } from "./config/project.ts";
import type { Deployment } from "./deployments/deployment.ts";
import { hasReports, reportStart, setSubscribers } from "./deployments/outbox.ts";
import type { DeliveryOptions, OutboxDelivery } from "./feedback/deliver.ts";
import { subscribersOf } from "./feedback/subscribers.ts";
import type { Log } from "./log.ts";
import type { Store } from "./platform/sqlite/store.ts";

/** Sends what happens to deployments to those who want to know. Nothing here throws, and no deployment waits for it. */
export interface ReportBack {
  /** Makes the targets in the settings of a project those that are sent reports. */
  readonly subscribe: (store: Store, settings: ProjectSettings) => void;
  /** Puts into the outbox that the script of a deployment was started. */
  readonly start: (store: Store, deployment: Deployment) => void;
  /** Delivers what waits in the outbox. */
  readonly wake: () => void;
  /** Resolves when nothing is being sent any more. */
  readonly ended: () => Promise<void>;
}

export interface ReportBackOptions extends Pick<DeliveryOptions, "store" | "log" | "stopping"> {
  /** Whether this instance may deliver: of several, one does. */
  readonly isLeader: () => boolean;
  readonly findSend: () => Promise<DeliveryOptions["findSend"]>;
}

/** Makes what reports back. It loads the code for that when the first report waits. */
export function createReportBack({
  store,
  log,
  stopping,
  isLeader,
  findSend,
}: ReportBackOptions): ReportBack {
  let delivery: Promise<OutboxDelivery> | null = null;

  async function load(): Promise<OutboxDelivery> {
    const [{ createDelivery }, find] = await Promise.all([import("./feedback/deliver.ts"), findSend()]);
    return createDelivery({ store, log, stopping, findSend: find });
  }

  async function deliver(): Promise<void> {
    if (!isLeader() || stopping.aborted || !hasReports(store)) return;
    delivery ??= load();
    (await delivery).wake();
  }

  function wake(): void {
    deliver().catch((error) => logFault(log, error));
  }

  return {
    wake,
    subscribe: (view, settings) => guarded(log, () => setSubscribers(view, subscribersOf(settings))),
    start(view, deployment) {
      guarded(log, () => {
        if (!wantsStarts(view)) return;
        view.transaction(() => reportStart(view, deployment));
        wake();
      });
    },
    async ended() {
      await (await delivery?.catch(() => null))?.ended();
    },
  };
}

function wantsStarts(store: Store): boolean {
  return (
    store.get("SELECT 1 FROM subscribers WHERE project = $project AND wants_starts LIMIT 1") !== undefined
  );
}

function guarded(log: Log, work: () => void): void {
  try {
    work();
  } catch (error) {
    logFault(log, error);
  }
}

function logFault(log: Log, error: unknown): void {
  log.error({ event: "feedback.failed", err: error }, "The outbox could not be read or written");
}
