import type { Store } from "../platform/sqlite/store.ts";
import { recordRollout } from "./checked-out.ts";
import type { Deployment, GuardOrder, RolloutExchange } from "./deployment.ts";

export interface GuardWatchOptions {
  readonly store: Store;
  readonly exchange: RolloutExchange;
  /** The new version is live and only watched now (true), or that is over (false). */
  readonly onGuard: (isGuarding: boolean) => void;
  readonly onChange: (deploymentId: number) => void;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
}

const pollMs = 200;

/**
 * Watches a run for the time in which its roll-out switches to the new version, and records it, and for the guard. If a newer
 * deployment waits meanwhile, or the service stops, the roll-out is asked to end the guard; if a roll back waits, to go back.
 *
 * @returns a function that ends the watch
 */
export function watchGuard(deployment: Deployment, options: GuardWatchOptions): () => void {
  const { store, exchange, onGuard, onChange, stopping } = options;
  let isGuarding = false;
  let liveAtMs: number | null = null;
  let given: GuardOrder | null = null;

  function look(): void {
    const report = exchange.read(deployment.id);
    const isLiveSince = report.liveAtMs !== liveAtMs;
    if (isLiveSince) {
      store.transaction(() => recordRollout(store, deployment, report));
      liveAtMs = report.liveAtMs;
    }
    const hasTurned = report.isGuarding !== isGuarding;
    if (hasTurned) {
      isGuarding = report.isGuarding;
      onGuard(isGuarding);
    }
    if (isLiveSince || hasTurned) onChange(deployment.id);
    const order = isGuarding ? orderFor(store, stopping) : null;
    if (order === null || order === given) return;
    exchange.order(deployment.id, order);
    given = order;
  }

  const timer = setInterval(() => {
    try {
      look();
    } catch {
      // The disk or the database is busy: the next look does it.
    }
  }, pollMs);
  return () => {
    clearInterval(timer);
    if (isGuarding) onGuard(false);
  };
}

function orderFor(store: Store, stopping: AbortSignal): GuardOrder | null {
  const sql = `SELECT max("trigger" = 'rollback') AS is_back FROM deployments
    WHERE project = $project AND state = 'queued'`;
  const isBack = store.get(sql)?.is_back;
  if (isBack === 1) return "back";
  return isBack === 0 || stopping.aborted ? "end" : null;
}
