import assert from "node:assert/strict";
import { test } from "node:test";
import { longestGraceS } from "../../../src/rollout/steps/remove.ts";

test("only a container that was drained has less than its own stop grace period", () => {
  const directory = { path: "/run/live", adminSocket: "/run/live/admin.sock", project: null };
  assert.equal(longestGraceS({ by: "live file", directory }), 10);
  assert.equal(longestGraceS({ by: "nobody" }), Number.POSITIVE_INFINITY);
  assert.equal(longestGraceS({ by: "watching proxy" }), Number.POSITIVE_INFINITY);
});
