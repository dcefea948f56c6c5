import "../harness/environment.ts";
import { test } from "node:test";
import fc from "fast-check";

/** The seed of the random values: FUZZ_SEED repeats a failed run. */
const seed = numberOf("FUZZ_SEED") ?? Date.now() % 2 ** 31;

/** How often a target runs: FUZZ_RUNS, else `usual`, which takes a few seconds. */
export function runsOr(usual: number): number {
  return numberOf("FUZZ_RUNS") ?? usual;
}

/** A test that `property` holds for `runsOr(usualRuns)` random values; one check may need several of them. */
export function fuzz<Values>(
  title: string,
  property: fc.IRawProperty<Values>,
  usualRuns: number,
  valuesPerCheck: number = 1,
): void {
  // Shrinking is slow for checks of many values, and its result says no more than the first failure.
  const endOnFailure = valuesPerCheck > 1;
  test(title, () => assertHolds(property, Math.ceil(runsOr(usualRuns) / valuesPerCheck), { endOnFailure }));
}

/** @throws with the smallest failing values, and how to repeat the run */
export async function assertHolds<Values>(
  property: fc.IRawProperty<Values>,
  numRuns: number,
  parameters: fc.Parameters<Values> = {},
): Promise<void> {
  const details = await fc.check(property, { ...parameters, numRuns, seed });
  if (!details.failed) return;
  const runs = process.env.FUZZ_RUNS ? `FUZZ_RUNS=${process.env.FUZZ_RUNS} ` : "";
  const report = await fc.asyncDefaultReportMessage(details);
  const cause = details.errorInstance;
  throw new Error(`Repeat with FUZZ_SEED=${seed} ${runs}npm run fuzz\n${report}`, { cause });
}

function numberOf(name: string): number | null {
  const text = process.env[name];
  if (!text) return null;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new Error(`${name} is not a number: ${text}`);
}
