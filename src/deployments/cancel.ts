import type { Deployment } from "./deployment.ts";
import { move } from "./move.ts";
import { findDeployment } from "./record.ts";
import type { Store } from "./store.ts";

/**
 * Cancels a deployment that waits for its turn; to be called in a transaction.
 *
 * @returns whether it waited: where it runs by now it is for the queue to end it
 */
export function cancelQueued(store: Store, id: number): boolean {
  const deployment: Deployment | null = findDeployment(store, id);
  if (deployment?.state !== "queued") return false;
  move(store, deployment, "cancelled");
  return true;
}
