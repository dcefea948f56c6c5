import "../harness/environment.ts";
import { test } from "node:test";
import fc from "fast-check";
import { exchange } from "../harness/raw-http.ts";

/** The seed of the random values: FUZZ_SEED repeats a failed run. */
const seed = numberOf("FUZZ_SEED") ?? Date.now() % 2 ** 31;

/**
 * A test that `property` holds for random values: as many as FUZZ_RUNS says, else `usualRuns`, which take a few seconds. If it
 * does not, the error has the smallest failing values, and how to repeat the run.
 *
 * @param valuesPerCheck how many of them `property` gets at once
 * @param afterwards checks what was seen, so that a target that reaches nothing fails
 */
export function fuzz<Values>(
  title: string,
  property: fc.IRawProperty<Values>,
  usualRuns: number,
  valuesPerCheck: number = 1,
  afterwards?: () => unknown,
): void {
  test(title, async () => {
    const numRuns = Math.ceil((numberOf("FUZZ_RUNS") ?? usualRuns) / valuesPerCheck);
    // Shrinking is slow for checks of many values, and its result says no more than the first failure.
    const details = await fc.check(property, { numRuns, seed, endOnFailure: valuesPerCheck > 1 });
    if (!details.failed) {
      await afterwards?.();
      return;
    }
    const runs = process.env.FUZZ_RUNS ? `FUZZ_RUNS=${process.env.FUZZ_RUNS} ` : "";
    const report = await fc.asyncDefaultReportMessage(details);
    const cause = details.errorInstance;
    throw new Error(`Repeat with FUZZ_SEED=${seed} ${runs}npm run fuzz\n${report}`, { cause });
  });
}

/** The statuses that a service answers, one request after the other. */
export async function statusesFrom(port: number, wires: readonly string[]): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (const wire of wires) {
    const { replies } = await exchange(port, Buffer.from(wire, "latin1"), { replyCount: 1 });
    statuses.push(...replies.map(({ status }) => status));
  }
  return statuses;
}

/** Where a text is cut into pieces, from its beginning to its end. */
export function edgesOf(length: number, cuts: readonly number[]): readonly number[] {
  return [0, ...cuts.filter((at) => at < length).sort((one, other) => one - other), length];
}

/** The JSON value with the value at `position` replaced; `position` counts all values. */
export function replaceAt<Payload extends object>(
  payload: Payload,
  position: number,
  value: unknown,
): Payload {
  const places: { holder: Record<string, unknown>; key: string }[] = [];
  const visit = (holder: Record<string, unknown>): void => {
    for (const key of Object.keys(holder)) {
      places.push({ holder, key });
      const inner = holder[key];
      if (typeof inner === "object" && inner !== null) visit(inner as Record<string, unknown>);
    }
  };
  const changed = structuredClone(payload);
  visit(changed as Record<string, unknown>);
  const place = places[position % places.length];
  if (place !== undefined) place.holder[place.key] = value;
  return changed;
}

function numberOf(name: string): number | null {
  const text = process.env[name];
  if (!text) return null;
  if (/^\d{1,10}$/.test(text)) return Number(text);
  throw new Error(`${name} is not a number: ${text}`);
}
