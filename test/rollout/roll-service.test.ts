import assert from "node:assert/strict";
import { test } from "node:test";
import { ranOutcome, unchangedOutcome } from "../../src/rollout/report.ts";
import { sortContainers, undoImageNames, wavesOf } from "../../src/rollout/roll-service.ts";
import { sampleContainer, sampleService, watchedEngine } from "./sample.ts";

test("after a failure, names return to the old images, unless recreated, or run and not shared", async () => {
  const { engine, posted } = watchedEngine();
  const once = { replacement: { how: "run-once" } } as const;
  const app = sampleService();
  const db = sampleService({ name: "db", image: "postgres:17", isBuilt: false });
  const migrate = sampleService({ name: "migrate", image: "shop-migrate", ...once });
  const index = sampleService({ name: "index", ...once });
  const running = new Map([
    ["db", [sampleContainer({ image: "sha256:old-db", imageName: "postgres:17" })]],
    ["migrate", [sampleContainer({ image: "sha256:old-migrate", imageName: "shop-migrate" })]],
    ["index", [sampleContainer({ image: "sha256:old-index" })]],
    ["app", [sampleContainer({ image: "sha256:old" })]],
  ]);
  const recreated = { ...unchangedOutcome(db, []), outcome: "recreated" as const };
  const outcomes = [recreated, ranOutcome(migrate, []), ranOutcome(index, [])];
  await undoImageNames({ engine, services: [migrate, index, db, app] }, running, outcomes);
  assert.deepEqual(posted, ["/images/sha256:old/tag?repo=shop-app&tag=latest"]);
});

test("services come in waves: after all that they depend on, and some at once", () => {
  const names = ["db", "cache", "migrate", "app", "worker"];
  const needs: Record<string, readonly string[]> = {
    migrate: ["db"],
    app: ["migrate", "db"],
    worker: ["db"],
  };
  const services = names.map((name) => sampleService({ name, dependsOn: needs[name] ?? [] }));
  const wavesIn = (mostAtOnce: number) =>
    wavesOf(services, mostAtOnce).map((wave) => wave.map(({ name }) => name).join(" "));
  assert.deepEqual(wavesIn(9), ["db cache", "migrate worker", "app"]);
  assert.deepEqual(wavesIn(1), ["db", "cache", "migrate", "worker", "app"]);
});

test("the running containers that the live files name stay, else the oldest that serve", () => {
  const one = sampleContainer({ number: 1 });
  const two = sampleContainer({ number: 2 });
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
