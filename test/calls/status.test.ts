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
  ["used 8 days ago, and the new one since", use(9, 1), use(99, 8), true],
  ["never used, and the new one was, for 8 days", use(8, 1), use(99, null), true],
  ["used 6 days ago", use(9, 1), use(99, 6), false],
  ["last used before a rotation of yesterday", use(1, 0.5), use(99, 30), false],
  ["used after the new one", use(20, 10), use(99, 9), false],
  ["unused, but so is the new one", use(20, null), use(99, 10), false],
] as const;

test("a previous secret is safe to drop if only the new one was used for a week", () => {
  for (const [what, current, previous, can] of verdicts)
    assert.equal(judgeSecrets({ current, previous }, nowMs).canDropPrevious, can, what);
});
