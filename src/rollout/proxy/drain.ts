import { setTimeout as sleep } from "node:timers/promises";
import { requestsInFlight } from "./caddy.ts";

export interface DrainLimits {
  /** Caddy chooses the upstream a moment before it counts the request: nobody is counted out before this has passed. */
  readonly settleMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** Waited at most where Caddy does not tell to which container requests go: as long as the longest request. */
  readonly blindMs: number;
}

/** How long the requests and streams of an old container may take to end, where no label says. */
export const defaultDrainTimeoutMs = 30_000;
const longestRequestMs = 10_000;

/** The limits of a drain, with the milliseconds of the label `hotpush.drain-timeout`; null: there is none. */
export function drainLimits(labelMs: number | null): DrainLimits {
  const [timeoutMs, blindMs] = [labelMs ?? defaultDrainTimeoutMs, labelMs ?? longestRequestMs];
  return { settleMs: 500, pollMs: 100, timeoutMs, blindMs };
}

export type Drained =
  | { readonly kind: "drained" }
  | { readonly kind: "timed_out"; readonly inFlight: number }
  | { readonly kind: "blind"; readonly why: "no answer" | "no names"; readonly waitedMs: number }
  | { readonly kind: "given_up" };

/**
 * Waits until the proxy has no request under way to `containers`, which it has been switched away from. Never fails:
 * after the limit, where Caddy does not tell, or when `signal` is aborted, it says so.
 */
export async function drain(
  directory: string,
  containers: readonly string[],
  limits: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  try {
    const drained = await countDown(directory, containers, limits, signal);
    return signal?.aborted ? { kind: "given_up" } : drained;
  } catch (error) {
    if (signal?.aborted) return { kind: "given_up" };
    throw error;
  }
}

async function countDown(
  directory: string,
  containers: readonly string[],
  { settleMs, pollMs, timeoutMs, blindMs }: DrainLimits,
  signal?: AbortSignal,
): Promise<Drained> {
  const wait = (ms: number) => sleep(ms, undefined, signal ? { signal } : {});
  await wait(settleMs);
  const deadlineMs = performance.now() + timeoutMs;
  let unnamedSinceMs: number | null = null;
  for (;;) {
    const inFlight = await requestsInFlight(directory, containers);
    if (inFlight === null) {
      await wait(blindMs);
      return { kind: "blind", why: "no answer", waitedMs: blindMs };
    }
    const { count, unnamed } = inFlight;
    if (count === 0 && unnamed === 0) return { kind: "drained" };
    const nowMs = performance.now();
    // A request that comes while Caddy counts may be in one number and not in the other: that is over at the next look.
    unnamedSinceMs = count === 0 ? (unnamedSinceMs ?? nowMs) : null;
    if (unnamedSinceMs !== null && nowMs - unnamedSinceMs > blindMs)
      return { kind: "blind", why: "no names", waitedMs: blindMs };
    if (count > 0 && nowMs > deadlineMs) return { kind: "timed_out", inFlight: count };
    await wait(pollMs);
  }
}
