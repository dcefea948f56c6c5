import assert from "node:assert/strict";
import { until } from "../harness/until.ts";
import { type LoadResult, startLoad } from "./load.ts";

/**
 * About 50 requests a second, so that the machine has time for the roll-outs: the tests assert that nothing fails, not
 * the throughput. `npm run bench:rollout` sends a thousand a second.
 */
const pauseMs = 300;
/** How many answers come before the work, and after it. */
const answersAround = 30;

/** Does `work` under load. @returns the answers; a failed request is an error */
export async function underLoad(origin: string, work: () => Promise<void>): Promise<LoadResult> {
  const load = startLoad(origin, pauseMs);
  try {
    await until("answers", () => load.answers.length > answersAround);
    await work();
    const soFar = load.answers.length;
    await until("answers after it", () => load.answers.length > soFar + answersAround);
  } finally {
    await load.stop();
  }
  const result = await load.stop();
  const counted = `${result.failures.length} of ${result.answers.length} requests failed`;
  assert.deepEqual(result.failures.slice(0, 3), [], counted);
  return result;
}
