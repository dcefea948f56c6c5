import { isDeepStrictEqual } from "node:util";

/** Something did not happen as the tour describes it. */
export class Unexpected extends Error {
  override readonly name = "Unexpected";
}

/**
 * Checks a fact before the tour states it.
 *
 * @throws Unexpected if `actual` is not `expected`
 */
export function expectEqual<Value>(what: string, actual: Value, expected: Value): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Unexpected(`${what}: expected ${JSON.stringify(expected)}, but saw ${JSON.stringify(actual)}.`);
}
