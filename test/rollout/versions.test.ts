import assert from "node:assert/strict";
import { test } from "node:test";
import {
  keptVersions,
  namesToRemove,
  previousVersion,
  type Version,
  withReturnTo,
  withVersion,
} from "../../src/rollout/versions.ts";

function version(commit: string, id: string = commit): Version {
  const app = { image: "shop-app", id: `sha256:${id}`, tag: `shop-app:${commit}` };
  return { commit, finishedAt: "2026-11-21T00:00:00.000Z", images: { app } };
}

const a = version("a");
const b = version("b");
const c = version("c");

test("a version with the same images takes the last one's place", () => {
  assert.deepEqual(withVersion([a, b], version("later", "b")), [a, version("later", "b")]);
});

test("the previous version is the last with other images", () => {
  assert.equal(previousVersion([a, b, c]), b);
  assert.equal(previousVersion([a, b, version("same", "b")])?.commit, "a");
  assert.equal(previousVersion([a]), null);
  assert.equal(previousVersion([]), null);
});

test("a version is found by the first digits of its commit", () => {
  assert.equal(previousVersion([version("abc123"), b, c], "abc")?.commit, "abc123");
  assert.equal(previousVersion([a, b, c], "d"), null);
});

test("going back twice goes two versions back, not to and fro", () => {
  const ran = { ...b, ran: ["migrate"] };
  // Read again from the file, it is another object.
  const once = withReturnTo([a, ran, c], { ...ran }, "now");
  assert.deepEqual(once, [a, { ...c, wasLeft: true }, { ...ran, finishedAt: "now" }]);
  assert.equal(previousVersion(once), a);
});

test("of a commit whose images changed, the version is found that was not rolled back from", () => {
  const [one, two, three] = ["one", "two", "three"].map((id) => version("a", id));
  assert.ok(one && two && three);
  const once = withReturnTo([one, two, three], two, "now");
  assert.equal(previousVersion(once, "a"), one);
});

test("a version that was left can still be named", () => {
  assert.equal(previousVersion(withReturnTo([a, b, c], b, "now"), "c")?.commit, "c");
});

test("kept are the newest and the good ones before it", () => {
  assert.deepEqual(keptVersions([a, b, c], 1), [b, c]);
  assert.deepEqual(keptVersions([a, { ...b, wasLeft: true }, c], 1), [a, c]);
  assert.deepEqual(keptVersions([a, b, c], 0), [c]);
  assert.deepEqual(keptVersions([], 2), []);
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
