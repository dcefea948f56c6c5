import type { Store } from "../platform/sqlite/store.ts";
import type { Problem } from "../problems.ts";
import { cancelledEnding, isCancelRequested } from "./cancel.ts";
import { type Deployment, type Ending, findDeployment } from "./deployment.ts";
import { transition } from "./states.ts";

export interface SettleOptions {
  /** Whether somebody cancelled it: then it does not run again. */
  readonly isCancelled?: boolean;
  /** False while the service stops: the next one decides about an interrupted deployment. */
  readonly doesResume?: boolean;
}

/**
 * Records how a running deployment ended, and what happens next if it was interrupted. Call it in a transaction. It is
 * one transaction because in between another instance may record a newer push, which supersedes an interrupted one.
 *
 * @returns the ending as it is recorded
 */
export function settle(
  store: Store,
  deployment: Deployment,
  ending: Ending,
  { isCancelled = false, doesResume = false }: SettleOptions = {},
): Ending {
  const mayResume = ending.state === "interrupted";
  const isUnwanted = mayResume && (isCancelled || isCancelRequested(store, deployment.id));
  const { state, ...details } = isUnwanted ? cancelledEnding : ending;
  transition(store, { id: deployment.id, state: "running" }, state, details);
  if (state === "interrupted" && doesResume) resume(store, deployment.id);
  return { state, ...details };
}

/** A deployment that was interrupted this often is given up: it may be what takes the service down. */
const mostAttempts = 3;

/**
 * Decides what happens to an interrupted deployment. Call it in a transaction. It runs again, unless a newer push of the
 * branch waits, or it was interrupted too often.
 *
 * @returns its new state, or null if it is not interrupted any more: another instance may have superseded it
 */
export function resume(store: Store, id: number): "queued" | "superseded" | "failed" | null {
  const deployment = findDeployment(store, id);
  if (deployment?.state !== "interrupted") return null;
  const newer = findWaiting(store, deployment);
  if (newer !== null) {
    transition(store, deployment, "superseded", { supersededBy: newer });
    return "superseded";
  }
  if (deployment.attempts < mostAttempts) {
    transition(store, deployment, "queued");
    return "queued";
  }
  transition(store, deployment, "failed", { problem: gaveUp(deployment) });
  return "failed";
}

function findWaiting(store: Store, { id, ref }: Deployment): number | null {
  const sql =
    "SELECT max(id) AS id FROM deployments WHERE project = $project AND ref = ? AND id > ? AND state = 'queued'";
  return (store.get(sql, ref, id)?.id as number | null) ?? null;
}

function gaveUp({ attempts }: Deployment): Problem {
  const detail = `The deployment was started ${attempts} times and Hotpush was stopped or killed each time before it ended. If its script replaces the container of Hotpush itself, leave that service out, as hotpush rollout does. Then redeliver the push.`;
  return { code: "deployment_gave_up", detail };
}
