import { isDeepStrictEqual } from "node:util";

/** Something did not happen as the tour says it does. */
export class Unexpected extends Error {
  override readonly name = "Unexpected";
}

/**
 * Nothing is told that was not looked at.
 *
 * @throws Unexpected where `actual` is not `expected`
 */
export function expectEqual<Value>(what: string, actual: Value, expected: Value): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Unexpected(`${what}: expected ${JSON.stringify(expected)}, but saw ${JSON.stringify(actual)}.`);
}
