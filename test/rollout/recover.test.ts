import assert from "node:assert/strict";
import { test } from "node:test";
import { sortOut } from "../../src/rollout/recover.ts";
import { sampleContainer } from "./sample.ts";

const one = sampleContainer({ number: 1 });
const two = sampleContainer({ number: 2 });

function names(containers: readonly { readonly name: string }[]): readonly string[] {
  return containers.map(({ name }) => name);
}

test("killed before the switch: the old one serves, the new one is left over", () => {
  const { live, leftover } = sortOut([one, two], ["shop-app-1"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-1"], ["shop-app-2"]]);
});

test("killed after the switch: the new one serves, the old one is left over", () => {
  const { live, leftover } = sortOut([one, two], ["shop-app-2"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-2"], ["shop-app-1"]]);
});

test("the live file names nothing that runs: the older one that serves stays", () => {
  const { live } = sortOut([sampleContainer({ number: 1, health: "starting" }), two], ["shop-app-9"], 1);
  assert.deepEqual(names(live), ["shop-app-2"]);
});

test("nothing was ever switched: the oldest serve", () => {
  assert.deepEqual(names(sortOut([one, two], [], 1).live), ["shop-app-1"]);
});

test("none is healthy: one that runs is better than none", () => {
  const starting = sampleContainer({ health: "starting" });
  assert.deepEqual(names(sortOut([starting], [], 1).live), ["shop-app-1"]);
});

test("the live file names one that is sick while another one is healthy: that one stays", () => {
  const sick = sampleContainer({ number: 2, health: "unhealthy" });
  const { live, leftover } = sortOut([one, sick], ["shop-app-2"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-1"], ["shop-app-2"]]);
});

test("what has ended is left over", () => {
  const { live, leftover } = sortOut([sampleContainer({ status: "exited" })], ["shop-app-1"], 1);
  assert.deepEqual([live.length, leftover.length], [0, 1]);
});

test("killed in the middle of switching three replicas: what the files name serves, in their order", () => {
  const containers = [1, 2, 3, 4, 5, 6].map((number) => sampleContainer({ number }));
  const { live, leftover } = sortOut(containers, ["shop-app-4", "shop-app-2", "shop-app-3"], 3);
  assert.deepEqual(names(live), ["shop-app-4", "shop-app-2", "shop-app-3"]);
  assert.deepEqual(names(leftover), ["shop-app-1", "shop-app-5", "shop-app-6"]);
});
