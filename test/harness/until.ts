import { setTimeout as sleep } from "node:timers/promises";

/** A machine that others share may stand still for half a minute. */
const longestWaitMs = 60_000;
const shortestPauseMs = 10;
const longestPauseMs = 250;

/**
 * Polls until the answer is not null, undefined or false, and returns it. The pauses grow, because a poll can be expensive.
 *
 * @throws Error after `withinMs` milliseconds, with `what` in its message
 */
export async function until<Value>(
  what: string,
  ask: () => Value | null | undefined | false | Promise<Value | null | undefined | false>,
  withinMs = longestWaitMs,
): Promise<Value> {
  const startMs = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    const waitedMs = performance.now() - startMs;
    if (waitedMs > withinMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await sleep(Math.min(Math.max(shortestPauseMs, waitedMs / 10), longestPauseMs));
  }
}
