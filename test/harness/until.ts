import { setTimeout as sleep } from "node:timers/promises";

const longestWaitMs = 30_000;

/**
 * Asks again and again until there is an answer other than null, undefined and false, and gives it.
 *
 * @throws Error after `withinMs` milliseconds; `what` says in it what was waited for
 */
export async function until<Value>(
  what: string,
  ask: () => Value | null | undefined | false | Promise<Value | null | undefined | false>,
  withinMs = longestWaitMs,
): Promise<Value> {
  const deadlineMs = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${withinMs} ms`);
    await sleep(10);
  }
}
