import "./environment.ts";

const every = Number(process.env.HOTPUSH_TEST_EVERY ?? 1);
/** A second try of a run is on the same calls, another run on others. */
const offset = Number(process.env.FUZZ_SEED ?? 0) % every;

/** The calls from the first to `last` that a fault is tried on: all of them, or every HOTPUSH_TEST_EVERY-th. */
export function triedCalls(last: number): readonly number[] {
  const calls = Array.from({ length: last }, (_, index) => index + 1);
  return calls.filter((call) => call % every === offset);
}
