import type { Log } from "../log.ts";
import { IllegalMove } from "./move.ts";
import { pause } from "./pause.ts";
import type { Store } from "./store.ts";

/** Gives what `write` gave, or null where nothing was written. */
export type Persist = <Result>(write: () => Result) => Promise<Result | null>;

const retryMs = 1_000;

/**
 * Makes the function that writes down what has happened, in one transaction: as soon as the disk lets us, so that nothing
 * is started before, or not at all where `signal` is aborted first. A move that the record forbids is told in the log and
 * left undone: it would be forbidden for ever.
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
        const isForbidden = error instanceof IllegalMove;
        const text = isForbidden
          ? "What happened does not go with the record, which stays as it is"
          : "What happened could not be written to disk; trying again in 1 s";
        log.error({ event: "store.failed", err: error }, text);
        if (isForbidden || signal.aborted) return null;
        await pause(retryMs, signal);
      }
    }
  };
}
