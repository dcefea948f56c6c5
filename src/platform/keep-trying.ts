import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "#log";

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

/** Waits for `ms` milliseconds, or until `signal` is aborted. Never rejects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {});
}
