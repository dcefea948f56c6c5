import assert from "node:assert/strict";
import { test } from "node:test";
import { judge } from "../../../src/rollout/guard/verdict.ts";

const kindOf = (now: readonly [bad: number, requests: number], before: readonly [number, number]) =>
  judge({ bad: now[0], requests: now[1] }, { bad: before[0], requests: before[1] }).kind;

test("with fewer than 50 requests nothing is judged, however many of them went wrong", () => {
  assert.equal(kindOf([49, 49], [0, 1_000]), "too few");
  assert.equal(kindOf([50, 50], [0, 1_000]), "worse");
});

test("a version that goes wrong as often as the one before is not worse", () => {
  assert.equal(kindOf([10, 100], [100, 1_000]), "good");
  assert.equal(kindOf([50, 50], [50, 50]), "good");
  assert.equal(kindOf([0, 500], [0, 500]), "good");
});

test("two percentage points more are tolerated, and chance on top of them", () => {
  assert.equal(kindOf([20, 1_000], [0, 1_000]), "good");
  assert.equal(kindOf([33, 1_000], [0, 1_000]), "good");
  assert.equal(kindOf([34, 1_000], [0, 1_000]), "worse");
});

test("of few requests more must go wrong than of many", () => {
  assert.equal(kindOf([3, 50], [0, 1_000]), "good");
  assert.equal(kindOf([4, 50], [0, 1_000]), "worse");
});

test("without requests to the version before, it counts as one without errors", () => {
  assert.equal(kindOf([10, 100], [0, 0]), "worse");
});

test("the counts are in the text", () => {
  const { text } = judge({ bad: 61, requests: 1_412 }, { bad: 1, requests: 900 });
  assert.equal(text, "61 of 1,412 requests went wrong (4.3 %), before 1 of 900 requests went wrong (0.1 %)");
  const few = judge({ bad: 0, requests: 12 }, { bad: 0, requests: 0 }).text;
  assert.match(few, /^too few requests to judge by, 50 are needed: 0 of 12 requests/);
});
