import type { Problem } from "../problems.ts";
import { mostAttempts } from "./claim.ts";
import type { Deployment, Ending } from "./deployment.ts";
import { move } from "./move.ts";
import { findDeployment } from "./record.ts";
import type { Store } from "./store.ts";

/** Writes down how a running deployment ended; to be called in a transaction. */
export function settle(store: Store, deployment: Deployment, { state, exitCode, problem }: Ending): void {
  move(store, { ...deployment, state: "running" }, state, { exitCode, problem });
}

/**
 * Decides what becomes of an interrupted deployment; to be called in a transaction. It runs again, unless a newer push
 * of the branch waits, or it was interrupted too often.
 *
 * @returns the state it went to, or null where it is not interrupted any more: another instance may have superseded it
 */
export function resume(store: Store, id: number): "queued" | "superseded" | "failed" | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "interrupted") return null;
  const newer = findWaiting(store, deployment);
  if (newer !== null) {
    move(store, deployment, "superseded", { supersededBy: newer });
    return "superseded";
  }
  if (deployment.attempts < mostAttempts) {
    move(store, deployment, "queued");
    return "queued";
  }
  move(store, deployment, "failed", { problem: gaveUp(deployment) });
  return "failed";
}

function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql = "SELECT max(id) AS id FROM deployments WHERE ref = ? AND id > ? AND state = 'queued'";
  return (store.get(sql, ref, id)?.id as number | null) ?? null;
}

function gaveUp({ attempts }: Deployment): Problem {
  const detail = `The deployment was started ${attempts} times and Hotpush was stopped or killed each time before it ended. See what the script does to the service, then redeliver the push.`;
  return { code: "deployment_gave_up", detail };
}
