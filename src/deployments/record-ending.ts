import { cancelledEnding, isCancelAsked } from "./cancel.ts";
import type { Deployment, Ending } from "./deployment.ts";
import { resume, settle } from "./settle.ts";
import type { Store } from "./store.ts";

/**
 * Writes down how a running deployment ended, and what becomes of it where it was interrupted; to be called in a
 * transaction. It is one, for between two another instance may record a newer push, which takes the place of an
 * interrupted one. What somebody has cancelled does not run again.
 *
 * @param doesResume false where the service is stopping: the next one decides what becomes of an interrupted deployment
 * @returns the ending as it is recorded
 */
export function recordEnding(
  store: Store,
  deployment: Deployment,
  ending: Ending,
  { isCancelled, doesResume }: { readonly isCancelled: boolean; readonly doesResume: boolean },
): Ending {
  const isUnwanted = isCancelled || isCancelAsked(store, deployment.id);
  const recorded = ending.state === "interrupted" && isUnwanted ? cancelledEnding : ending;
  settle(store, deployment, recorded);
  if (recorded.state === "interrupted" && doesResume) resume(store, deployment.id);
  return recorded;
}
