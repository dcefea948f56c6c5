import assert from "node:assert/strict";
import { test } from "node:test";
import { formatDuration, parseDurationMs } from "../../src/config/values.ts";

test("a duration is a number with its unit", () => {
  const taken = { "0": 0, "0s": 0, "500ms": 500, "007s": 7_000, "30m": 1_800_000, "24h": 86_400_000 };
  for (const [text, ms] of Object.entries(taken)) assert.equal(parseDurationMs(text), ms, text);
});

test("anything else is refused, never read as something else", () => {
  const refused = [
    ..."|1|60000|00|-1s|+1s|1.5h|1,5s|1e3s|0x1s|1_000s|1 s| 1s|1S|1MS|1sec|1d|s|1m30s|PT30M|25h".split("|"),
    ..."86400001ms|9999999999ms|Infinity|NaN|never|1s\n|1s\0|１s|٣s|1ѕ|1s;|$(id)|--1s|1ss".split("|"),
  ];
  for (const text of refused) assert.equal(parseDurationMs(text), null, JSON.stringify(text));
});

test("a duration is written for a person", () => {
  const s = 1_000;
  const min = 60_000;
  const h = 3_600_000;
  for (const [ms, text] of [
    ...([[0, "0 ms"] as const, [850, "850 ms"], [s, "1 s"], [12_340, "12.3 s"], [59_900, "59.9 s"]] as const),
    ...([[min, "1 min"] as const, [250 * s, "4 min 10 s"], [h, "1 h"], [125 * min, "2 h 5 min"]] as const),
  ])
    assert.equal(formatDuration(ms), text);
});
