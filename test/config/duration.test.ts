import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatDuration, parseDurationMs } from "../../src/config/duration.ts";

const taken: readonly [string, number][] = [
  ["0", 0],
  ["0s", 0],
  ["1ms", 1],
  ["500ms", 500],
  ["1s", 1_000],
  ["90s", 90_000],
  ["007s", 7_000],
  ["30m", 1_800_000],
  ["1h", 3_600_000],
  ["24h", 86_400_000],
  ["1440m", 86_400_000],
  ["86400000ms", 86_400_000],
];

for (const [text, ms] of taken) {
  test(`${text} is ${ms} ms`, () => assert.equal(parseDurationMs(text), ms));
}

const refused = [
  ..."|1|30|60000|00|-1s|+1s|1.5h|.5s|1,5s|1e3s|0x1s|1_000s|1 s| 1s|1s |1S|1M|1H|1MS|1sec|1min|1hour|1d|1w".split(
    "|",
  ),
  ..."s|m|h|ms|1m30s|1h 30m|PT30M|30m30|25h|86400001ms|86401s|999999999h|9999999999ms|Infinity|NaN".split(
    "|",
  ),
  ..."null|never|1s\n|1s\0|１s|٣s|1ѕ|1s;|$(id)|1s#|--1s|1ss|1mss".split("|"),
];

for (const text of refused) {
  test(`${JSON.stringify(text)} is not a duration`, () => assert.equal(parseDurationMs(text), null));
}

test("a bare number other than 0 is never given a unit", () => {
  fc.assert(fc.property(fc.integer({ min: 1 }), (number) => parseDurationMs(String(number)) === null));
});

test("an accepted duration is a whole number in the range of a timer", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{1,10}(ms|s|m|h)$/)), (text) => {
      const ms = parseDurationMs(text);
      return ms === null || (Number.isInteger(ms) && ms >= 0 && ms < 2 ** 31);
    }),
    { numRuns: 2_000 },
  );
});

const written: readonly [number, string][] = [
  [0, "0 ms"],
  [850, "850 ms"],
  [1_000, "1 s"],
  [12_340, "12.3 s"],
  [59_900, "59.9 s"],
  [60_000, "1 min"],
  [250_000, "4 min 10 s"],
  [3_600_000, "1 h"],
  [7_500_000, "2 h 5 min"],
];

for (const [ms, text] of written) {
  test(`${ms} ms is written as ${text}`, () => assert.equal(formatDuration(ms), text));
}
