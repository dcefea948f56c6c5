import type { Deployment } from "./deployment.ts";
import { findLastDeployedRef } from "./list.ts";
import { recordWish, type Wish } from "./record.ts";
import type { Store } from "./store.ts";

/**
 * Records the wish to go back to a commit, on the branch that was deployed last. It takes its turn like a push, in
 * whose place it comes where one waits, and catch-up leaves what it brought alone until the next push.
 *
 * @returns null where nothing was deployed yet
 */
export function recordRollback(store: Store, wish: Pick<Wish, "commit" | "requestedBy">): Deployment | null {
  return store.transaction(() => {
    const ref = findLastDeployedRef(store);
    return ref === null ? null : recordWish(store, { trigger: "rollback", ref, ...wish });
  });
}
