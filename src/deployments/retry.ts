import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../log.ts";
import type { Store } from "../platform/sqlite/store.ts";
import { IllegalTransition } from "./states.ts";

const retryMs = 1_000;

export interface KeepTryingOptions {
  /** For the log: what could not be done. */
  readonly what: string;
  /** Whether the cause of an error can pass, so that another attempt is worth it. */
  readonly canPass: (error: unknown) => boolean;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/**
 * Repeats `attempt` every second while it throws errors whose cause can pass.
 *
 * @returns the result of `attempt`, or null if `signal` was aborted first
 * @throws any other error of `attempt`
 */
export async function keepTrying<Result>(
  attempt: () => Promise<Result>,
  { what, canPass, signal, log }: KeepTryingOptions,
): Promise<Result | null> {
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (!canPass(error)) throw error;
      log.error({ event: "system.short", err: error }, `${what}; trying again in 1 s`);
      await pause(retryMs, signal);
    }
  }
  return null;
}

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

/** Waits for `ms` milliseconds, or until `signal` is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
