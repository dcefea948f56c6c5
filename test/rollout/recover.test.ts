import assert from "node:assert/strict";
import { test } from "node:test";
import { sortContainers } from "../../src/rollout/recover.ts";
import { sampleContainer } from "./sample.ts";

const one = sampleContainer({ number: 1 });
const two = sampleContainer({ number: 2 });

test("the running containers that the live files name stay, else the oldest that serve", () => {
  const starting = sampleContainer({ health: "starting" });
  const sick = sampleContainer({ number: 2, health: "unhealthy" });
  const six = [1, 2, 3, 4, 5, 6].map((number) => sampleContainer({ number }));
  const cases: readonly (readonly [string, Parameters<typeof sortContainers>, string])[] = [
    ["killed before the switch", [[one, two], ["shop-app-1"], 1], "1 | 2"],
    ["killed after the switch", [[one, two], ["shop-app-2"], 1], "2 | 1"],
    ["the file names nothing that runs", [[starting, two], ["shop-app-9"], 1], "2 | 1"],
    ["nothing was ever switched", [[one, two], [], 1], "1 | 2"],
    ["none is healthy", [[starting], [], 1], "1 | "],
    ["the file names a sick one", [[one, sick], ["shop-app-2"], 1], "1 | 2"],
    ["it has ended", [[sampleContainer({ status: "exited" })], ["shop-app-1"], 1], " | 1"],
    ["three replicas", [six, ["shop-app-4", "shop-app-2", "shop-app-3"], 3], "4 2 3 | 1 5 6"],
  ];
  for (const [claim, given, expected] of cases) {
    const { live, leftover } = sortContainers(...given);
    const numbers = [live, leftover].map((some) => some.map(({ number }) => number).join(" "));
    assert.equal(numbers.join(" | "), expected, claim);
  }
});
