import type { Log } from "../log.ts";
import { pause } from "./pause.ts";

const retryMs = 1_000;

export interface KeepTryingOptions {
  /** For the log: what could not be done. */
  readonly what: string;
  /** Whether the cause of an error can go away, so that another attempt is worth it. */
  readonly canHeal: (error: unknown) => boolean;
  readonly signal: AbortSignal;
  readonly log: Log;
}

/**
 * Repeats `attempt` every second for as long as it throws what can heal.
 *
 * @returns what `attempt` gave, or null if `signal` was aborted first
 * @throws whatever else `attempt` throws
 */
export async function keepTrying<Result>(
  attempt: () => Promise<Result>,
  { what, canHeal, signal, log }: KeepTryingOptions,
): Promise<Result | null> {
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (!canHeal(error)) throw error;
      log.error({ event: "system.short", err: error }, `${what}; trying again in 1 s`);
      await pause(retryMs, signal);
    }
  }
  return null;
}
