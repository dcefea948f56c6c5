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
  | { readonly kind: "blind"; readonly why: "no answer" | "no names"; readonly waitedMs: number };

/** A request that comes while Caddy counts may be in one number and not in the other: so often in a row, none is. */
const unnamedPolls = 5;

/**
 * Waits until the proxy has no request under way to `containers`, which it has been switched away from. Never fails:
 * after the limit, or where Caddy does not tell, it says so.
 */
export async function drain(
  directory: string,
  containers: readonly string[],
  limits: DrainLimits,
): Promise<Drained> {
  await sleep(limits.settleMs);
  const deadline = performance.now() + limits.timeoutMs;
  for (let unnamed = 0; unnamed < unnamedPolls; ) {
    const inFlight = await requestsInFlight(directory, containers);
    if (inFlight === null) return await waitBlindly("no answer", limits);
    if (inFlight.count === 0 && inFlight.unnamed === 0) return { kind: "drained" };
    unnamed = inFlight.unnamed > 0 && inFlight.count === 0 ? unnamed + 1 : 0;
    if (performance.now() > deadline) return { kind: "timed_out", inFlight: inFlight.count };
    await sleep(limits.pollMs);
  }
  return await waitBlindly("no names", limits);
}

async function waitBlindly(why: "no answer" | "no names", { blindMs }: DrainLimits): Promise<Drained> {
  await sleep(blindMs);
  return { kind: "blind", why, waitedMs: blindMs };
}
