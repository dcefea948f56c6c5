import type { Push } from "../receiver/push.ts";
import type { Deployment } from "./deployment.ts";
import { findRunning } from "./list.ts";
import { type Recorded, type RecordedDeployment, recordPush } from "./record.ts";
import type { Store } from "./store.ts";

/** What recording a push would come to. */
export interface Rehearsed {
  readonly recorded: Recorded;
  /** What runs at the moment, and would be waited for. */
  readonly running: RecordedDeployment | null;
}

/** Records `push` in a transaction and takes it back: what is said is exactly what would be done. Nothing is kept. */
export function rehearsePush(store: Store, push: Push): Rehearsed {
  const takeBack = new Error("A rehearsal is over.");
  const seen: Rehearsed[] = [];
  try {
    store.transaction(() => {
      const running = findRunning(store);
      seen.push({ recorded: recordPush(store, push), running: running && recordedOf(running) });
      throw takeBack;
    });
  } catch (error) {
    if (error !== takeBack) throw error;
  }
  const [rehearsed] = seen;
  if (!rehearsed) throw takeBack;
  return rehearsed;
}

function recordedOf({ id, ref, commit, state }: Deployment): RecordedDeployment {
  return { id, ref, commit, state };
}
