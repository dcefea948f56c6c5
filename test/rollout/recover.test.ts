import assert from "node:assert/strict";
import { test } from "node:test";
import { sortContainers } from "../../src/rollout/recover.ts";
import { sampleContainer } from "./sample.ts";

const one = sampleContainer({ number: 1 });
const two = sampleContainer({ number: 2 });

function names(containers: readonly { readonly name: string }[]): readonly string[] {
  return containers.map(({ name }) => name);
}

test("killed before the switch: the old one serves, the new one is left over", () => {
  const { live, leftover } = sortContainers([one, two], ["shop-app-1"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-1"], ["shop-app-2"]]);
});

test("killed after the switch: the new one serves, the old one is left over", () => {
  const { live, leftover } = sortContainers([one, two], ["shop-app-2"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-2"], ["shop-app-1"]]);
});

test("the live file names nothing that runs: the older one that serves stays", () => {
  const { live } = sortContainers(
    [sampleContainer({ number: 1, health: "starting" }), two],
    ["shop-app-9"],
    1,
  );
  assert.deepEqual(names(live), ["shop-app-2"]);
});

test("nothing was ever switched: the oldest serve", () => {
  assert.deepEqual(names(sortContainers([one, two], [], 1).live), ["shop-app-1"]);
});

test("if none is healthy, one that runs stays", () => {
  const starting = sampleContainer({ health: "starting" });
  assert.deepEqual(names(sortContainers([starting], [], 1).live), ["shop-app-1"]);
});

test("the live file names an unhealthy one while another is healthy: that one stays", () => {
  const sick = sampleContainer({ number: 2, health: "unhealthy" });
  const { live, leftover } = sortContainers([one, sick], ["shop-app-2"], 1);
  assert.deepEqual([names(live), names(leftover)], [["shop-app-1"], ["shop-app-2"]]);
});

test("an ended container is a leftover", () => {
  const { live, leftover } = sortContainers([sampleContainer({ status: "exited" })], ["shop-app-1"], 1);
  assert.deepEqual([live.length, leftover.length], [0, 1]);
});

test("killed while switching three replicas: those that the files name stay", () => {
  const containers = [1, 2, 3, 4, 5, 6].map((number) => sampleContainer({ number }));
  const { live, leftover } = sortContainers(containers, ["shop-app-4", "shop-app-2", "shop-app-3"], 3);
  assert.deepEqual(names(live), ["shop-app-4", "shop-app-2", "shop-app-3"]);
  assert.deepEqual(names(leftover), ["shop-app-1", "shop-app-5", "shop-app-6"]);
});
