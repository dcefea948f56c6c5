import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
import { readStack } from "../../../src/rollout/swarm/stack.ts";
import { isProblem } from "../../harness/is-problem.ts";

function policyOf(said: ComposeService) {
  const services = { app: { image: "app", build: {}, ...said } };
  const [service] = readStack({ name: "shop", services }).services;
  if (!service) throw new Error("The stack has no service.");
  return service.update;
}

test("order and failure_action in the file win, with a warning if they are risky", () => {
  const { order, added, warnings } = policyOf({
    deploy: { update_config: { order: "stop-first", failure_action: "pause" } },
  });
  assert.equal(order, "stop-first");
  assert.deepEqual(added.update_config, { order: "stop-first", failure_action: "pause" });
  assert.equal(warnings.length, 2);
});

test("the file's start-first and rollback give no warning", () => {
  const update_config = { order: "start-first", failure_action: "rollback" };
  assert.deepEqual(policyOf({ deploy: { update_config } }).warnings, []);
});

test("failure_action continue is refused: it would let a broken version serve", () => {
  assert.throws(
    () => policyOf({ deploy: { update_config: { failure_action: "continue" } } }),
    isProblem("compose_invalid"),
  );
});

test("a service with a host port is left as in the file: it cannot run twice", () => {
  const { order, added } = policyOf({ ports: [{ published: "80", target: 80, mode: "host" }] });
  assert.equal(order, "stop-first");
  assert.deepEqual(added, {});
});

test("a port that Swarm shares does not keep a second task from running", () => {
  assert.equal(policyOf({ ports: [{ published: "80", target: 80, mode: "ingress" }] }).order, "start-first");
});

test("the label hotpush.rollout=recreate counts in the deploy section too", () => {
  assert.equal(policyOf({ deploy: { labels: { "hotpush.rollout": "recreate" } } }).order, "stop-first");
});

test("the time-out grows with the rounds that the update takes", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const timeoutMs = (parallelism: number) =>
    policyOf({ labels, deploy: { replicas: 4, update_config: { parallelism, monitor: "1s" } } }).timeoutMs;
  assert.deepEqual([timeoutMs(1), timeoutMs(2), timeoutMs(0)], [61_000, 31_000, 16_000]);
});

test("with stop-first, each round also waits for the old task to stop", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const update_config = { order: "stop-first", monitor: "1s" };
  assert.equal(policyOf({ labels, stop_grace_period: "30s", deploy: { update_config } }).timeoutMs, 46_000);
});

test("an image from a registry gets two more minutes to reach a node", () => {
  assert.equal(policyOf({ image: "ghcr.io/shop/app" }).timeoutMs - policyOf({}).timeoutMs, 120_000);
});
