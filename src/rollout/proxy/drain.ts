import { setTimeout as sleep } from "node:timers/promises";
import { requestsInFlight } from "./caddy.ts";

export interface DrainLimits {
  /** Caddy chooses the upstream a moment before it counts the request: nobody is counted out before this has passed. */
  readonly settleMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** Waited instead where Caddy does not answer: as long as the longest request. */
  readonly blindMs: number;
}

const longestRequestMs = 10_000;

/** The limits of a drain that may take up to `timeoutMs`. */
export function drainLimits(timeoutMs: number): DrainLimits {
  return { settleMs: 500, pollMs: 100, timeoutMs, blindMs: Math.min(longestRequestMs, timeoutMs) };
}

export type Drained =
  | { readonly kind: "drained" }
  | { readonly kind: "timed_out"; readonly inFlight: number }
  | { readonly kind: "blind"; readonly waitedMs: number };

/**
 * Waits until the proxy has no request under way to `containers`, which it has been switched away from. Never fails:
 * after the limit, or without an answer from Caddy, it says so.
 */
export async function drain(
  directory: string,
  containers: readonly string[],
  limits: DrainLimits,
): Promise<Drained> {
  await sleep(limits.settleMs);
  const deadline = performance.now() + limits.timeoutMs;
  for (;;) {
    const inFlight = await requestsInFlight(directory, containers);
    if (inFlight === 0) return { kind: "drained" };
    if (inFlight === null) {
      await sleep(limits.blindMs);
      return { kind: "blind", waitedMs: limits.blindMs };
    }
    if (performance.now() > deadline) return { kind: "timed_out", inFlight };
    await sleep(limits.pollMs);
  }
}
