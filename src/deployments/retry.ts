import type { Log } from "../log.ts";
import { pause } from "../platform/keep-trying.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { IllegalTransition } from "./states.ts";

const retryMs = 1_000;

/** Returns the result of `write`, or null if nothing was written. */
export type Persist = <Result>(write: () => Result) => Promise<Result | null>;

/**
 * Makes the function that records what has happened, in one transaction. It retries until the disk works, so that
 * nothing else starts before; it gives up if `signal` is aborted. An illegal transition is logged and left undone: it
 * would never become legal.
 */
export function createPersist(
  store: Store,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Persist {
  return async (write) => {
    for (;;) {
      try {
        return store.transaction(write);
      } catch (error) {
        const isIllegal = error instanceof IllegalTransition;
        const text = isIllegal
          ? "The record does not allow what happened, and stays as it is"
          : "What happened could not be written to disk; trying again in 1 s";
        log.error({ event: "store.failed", err: error }, text);
        if (isIllegal || signal.aborted) return null;
        await pause(retryMs, signal);
      }
    }
  };
}
