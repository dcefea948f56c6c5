import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeSecrets } from "../../src/calls/status.ts";
import type { SecretUse } from "../../src/deployments/store.ts";

const dayMs = 24 * 3_600_000;
const nowMs = Date.UTC(2026, 5, 30);

/** Days ago, or null for never. */
function use(knownDays: number, usedDays: number | null): SecretUse {
  const at = (days: number) => nowMs - days * dayMs;
  const lastUsedAtMs = usedDays === null ? null : at(usedDays);
  return { knownSinceMs: at(knownDays), lastUsedAtMs, host: "github", deliveryId: null };
}

const verdicts = [
  { what: "used 8 days ago, and the new one since", current: use(9, 1), previous: use(99, 8), can: true },
  {
    what: "never used, and the new one was, for 8 days",
    current: use(8, 1),
    previous: use(99, null),
    can: true,
  },
  { what: "used 6 days ago", current: use(9, 1), previous: use(99, 6), can: false },
  {
    what: "last used before a rotation of yesterday",
    current: use(1, 0.5),
    previous: use(99, 30),
    can: false,
  },
  { what: "used after the new one", current: use(20, 10), previous: use(99, 9), can: false },
  { what: "unused, but so is the new one", current: use(20, null), previous: use(99, 10), can: false },
] as const;

for (const { what, current, previous, can } of verdicts) {
  test(`a previous secret ${what} is ${can ? "" : "not "}safe to drop`, () => {
    const judged = judgeSecrets({ current, previous }, nowMs);
    assert.equal(judged.canDropPrevious, can);
    assert.match(
      judged.advice ?? "",
      can ? /^Safe to drop: .*drop-previous$/ : /^(?:Not safe|Safe to drop when)/,
    );
  });
}

test("without a previous secret there is no advice", () => {
  const judged = judgeSecrets({ current: use(1, 1), previous: null }, nowMs);
  assert.deepEqual([judged.previous, judged.canDropPrevious, judged.advice], [null, null, null]);
});
