import { mostAttempts } from "./claim.ts";
import type { Deployment, Ending } from "./deployment.ts";
import { move } from "./move.ts";
import type { Store } from "./store.ts";

/** Writes down how a running deployment ended; to be called in a transaction. */
export function settle(store: Store, deployment: Deployment, { state, exitCode, problem }: Ending): void {
  move(store, { ...deployment, state: "running" }, state, { exitCode, problem });
}

/**
 * Decides what becomes of an interrupted deployment; to be called in a transaction. It runs again, unless a newer push
 * of the branch waits, or it was interrupted too often.
 *
 * @returns the state it went to
 */
export function resume(store: Store, deployment: Deployment): "queued" | "superseded" | "failed" {
  const interrupted = { ...deployment, state: "interrupted" } as const;
  const newer = findWaiting(store, deployment);
  if (newer !== null) {
    move(store, interrupted, "superseded", { supersededBy: newer });
    return "superseded";
  }
  if (deployment.attempts < mostAttempts) {
    move(store, interrupted, "queued");
    return "queued";
  }
  const detail = `The deployment was started ${deployment.attempts} times and Hotpush was stopped or killed each time before it ended. See what the script does to the service, then redeliver the push.`;
  move(store, interrupted, "failed", { problem: { code: "deployment_gave_up", detail } });
  return "failed";
}

function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql = "SELECT max(id) AS id FROM deployments WHERE ref = ? AND id > ? AND state = 'queued'";
  return (store.get(sql, ref, id)?.id as number | null) ?? null;
}
