import assert from "node:assert/strict";
import { test } from "node:test";
import { headersOf, hostNamed, isAuthentic, loadDelivery, payloadOf, testDeliveries } from "./fixtures.ts";

const gitness = hostNamed("gitness");
const harness = hostNamed("harness");

const pushed = loadDelivery("gitness", "push-main");

testDeliveries(gitness);
testDeliveries(harness);

test("a body without the newline at its end is not what was signed", () => {
  const claim = gitness.claimSignature(headersOf(pushed));
  assert(!isAuthentic(claim, pushed.secret, pushed.body.trimEnd()));
});

test("a pull request that calls itself a push is unusable, though it has ref and commits", () => {
  const reading = gitness.read("branch_updated", payloadOf(loadDelivery("gitness", "pull-request-event")));
  assert(reading.kind === "unusable");
  assert.equal(reading.field, "/trigger");
});

for (const [key, field] of [
  ["ref", "/ref/name"],
  ["old_sha", "/old_sha"],
  ["sha", "/sha"],
] as const) {
  test(`a push without its ${key} is unusable, and the field is named`, () => {
    const reading = gitness.read("branch_updated", { ...payloadOf(pushed), [key]: undefined });
    assert(reading.kind === "unusable");
    assert.equal(reading.field, field);
  });
}
