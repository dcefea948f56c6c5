import type { Push } from "../receiver/push.ts";
import type { Deployment } from "./deployment.ts";
import type { OnSuperseded } from "./place.ts";
import { type Recorded, recordPush } from "./record.ts";
import type { Store } from "./store.ts";

export type Accept = (push: Push) => Promise<Recorded>;

export interface AcceptOptions {
  readonly store: Store;
  /** Claims what is next, in the same transaction, where nothing is running. */
  readonly claim: () => Deployment | null;
  /** Called once the claim is on disk. */
  readonly begin: (claimed: Deployment) => void;
  /** Called, once that is on disk, for each deployment that gave way to a newer one. */
  readonly onSuperseded: OnSuperseded;
}

interface Waiting {
  readonly push: Push;
  readonly resolve: (recorded: Recorded) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Makes the function that puts pushes on disk. Pushes that arrive together share one transaction, and so one sync of
 * the disk; each is told only when that is done.
 */
export function createAccept({ store, claim, begin, onSuperseded }: AcceptOptions): Accept {
  let waiting: Waiting[] = [];

  function flush(): void {
    const batch = waiting;
    waiting = [];
    try {
      const superseded: [number, number][] = [];
      const { recorded, claimed } = store.transaction(() => ({
        recorded: batch.map(({ push }) => recordPush(store, push, (id, by) => superseded.push([id, by]))),
        claimed: claim(),
      }));
      batch.forEach(({ resolve }, index) => {
        resolve(asClaimed(recorded[index] as Recorded, claimed));
      });
      for (const [id, by] of superseded) onSuperseded(id, by);
      if (claimed) begin(claimed);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return (push) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) setImmediate(flush);
      waiting.push({ push, resolve, reject });
    });
}

/** The sender is told `running` where the deployment was claimed in the same moment. */
function asClaimed(recorded: Recorded, claimed: Deployment | null): Recorded {
  if (recorded.deployment.id !== claimed?.id) return recorded;
  return { ...recorded, deployment: { ...recorded.deployment, state: "running" } };
}
