import { setTimeout as sleep } from "node:timers/promises";
import { requestsInFlight } from "./caddy.ts";

export interface DrainLimits {
  /** Caddy chooses the upstream a moment before it counts the request: nobody is counted out before this has passed. */
  readonly settleMs: number;
  readonly pollMs: number;
  readonly timeoutMs: number;
  /** Waited instead where Caddy does not tell: as long as the longest request. */
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
  | { readonly kind: "blind"; readonly why: "no answer" | "no names"; readonly waitedMs: number }
  | { readonly kind: "given_up" };

/**
 * A request that comes while Caddy counts may be in one number and not in the other: so often in a row, none is, unless
 * it is a slow check of our own, which such a Caddy does not tell from those to the old container.
 */
const unnamedPolls = 5;

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
  const waitBlindly = async (why: "no answer" | "no names"): Promise<Drained> => {
    await wait(blindMs);
    return { kind: "blind", why, waitedMs: blindMs };
  };
  await wait(settleMs);
  const deadline = performance.now() + timeoutMs;
  for (let unnamed = 0; unnamed < unnamedPolls; ) {
    const inFlight = await requestsInFlight(directory, containers);
    if (inFlight === null) return await waitBlindly("no answer");
    if (inFlight.count === 0 && inFlight.unnamed === 0) return { kind: "drained" };
    unnamed = inFlight.unnamed > 0 && inFlight.count === 0 ? unnamed + 1 : 0;
    if (performance.now() > deadline) return { kind: "timed_out", inFlight: inFlight.count };
    await wait(pollMs);
  }
  return await waitBlindly("no names");
}
