import { mainRefs } from "../receiver/push.ts";
import type { Deployment } from "./deployment.ts";
import { findLastDeployedRef } from "./list.ts";
import { recordWish, type Wish } from "./record.ts";
import type { Store } from "./store.ts";

/**
 * Records the wish to go back to a commit, on the one of `refs` that was deployed last. It takes its turn like a push,
 * in whose place it comes where one waits, and catch-up leaves what it brought alone until the next push.
 *
 * @param refs the branches that are deployed
 * @returns null where nothing was deployed yet
 */
export function recordRollback(
  store: Store,
  refs: readonly string[],
  wish: Pick<Wish, "commit" | "requestedBy">,
): Deployment | null {
  return store.transaction(() => {
    // BRANCH may name a branch that never was deployed: what served before it may be gone back to all the same.
    const hasDeployed = findLastDeployedRef(store, mainRefs) !== null;
    const ref = findLastDeployedRef(store, refs) ?? (hasDeployed ? (refs[0] ?? null) : null);
    return ref === null ? null : recordWish(store, { trigger: "rollback", ref, ...wish });
  });
}
