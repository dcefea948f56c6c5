import assert from "node:assert/strict";
import { test } from "node:test";
import { keptVersions, namesToRemove } from "../../src/rollout/prune.ts";

test("kept are the newest and the good ones before it", () => {
  const [a, b, c] = ["a", "b", "c"].map((commit) => ({ commit, finishedAt: "", images: {} }));
  assert.ok(a && b && c);
  assert.deepEqual(keptVersions([a, b, c], 1), [b, c]);
  assert.deepEqual(keptVersions([a, { ...b, wasLeft: true }, c], 1), [a, c]);
  assert.deepEqual(keptVersions([a, b, c], 0), [c]);
});

const project = { name: "shop", images: ["shop-app"] };
const commit = "shop-app:0123456789ab";
const later = "shop-app:0123456789ab-2";

const needed = "sha256:1";
const worker = ["shop-worker:latest", "shop-worker:0123456789ab", "shop-worker:mine"];

const cases: readonly (readonly [
  claim: string,
  id: string,
  tags: readonly string[],
  removed: readonly string[],
])[] = [
  ["an image that nothing needs loses all names of ours", "0", [commit, later], [commit, later]],
  ["a name that somebody else gave keeps the image", "0", [commit, "registry.example/shop:v1"], [commit]],
  ["the image of a service that has left the compose file goes too", "0", worker, worker.slice(0, 2)],
  ["a nameless image goes by its id", "0", [], ["0"]],
  [
    "a needed image keeps the names of kept versions and those not by commit",
    needed,
    ["shop-app:latest", commit, later],
    [commit],
  ],
  ["an image that is needed never loses its last name", needed, [commit], []],
];

for (const [claim, id, tags, removed] of cases)
  test(claim, () =>
    assert.deepEqual(namesToRemove({ id, tags }, project, new Set([needed]), new Set([later])), removed),
  );
