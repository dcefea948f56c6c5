import { setTimeout as sleep } from "node:timers/promises";

const longestWaitMs = 30_000;
const shortestPauseMs = 10;
const longestPauseMs = 250;

/**
 * Asks again and again until there is an answer other than null, undefined and false, and gives it. The longer it takes,
 * the longer are the pauses: many a question costs more than the work that is waited for can spare.
 *
 * @throws Error after `withinMs` milliseconds; `what` says in it what was waited for
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
