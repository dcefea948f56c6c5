import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import {
  keptVersions,
  previousVersion,
  readVersions,
  type Version,
  withReturnTo,
  withVersion,
  writeVersions,
} from "../../src/rollout/versions.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

function version(commit: string, id: string = commit): Version {
  const app = { image: "shop-app", id: `sha256:${id}`, tag: `shop-app:${commit}` };
  return { commit, finishedAt: "2026-11-21T00:00:00.000Z", images: { app } };
}

const a = version("a");
const b = version("b");
const c = version("c");

test("versions are read as written; without a file there are none", async (t) => {
  const path = join(temporaryDirectory(t), "rollout", "shop.json");
  assert.deepEqual(await readVersions(path), []);
  await writeVersions(path, [a, b]);
  assert.deepEqual(await readVersions(path), [a, b]);
});

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
  const once = withReturnTo([a, b, c], b, "now");
  assert.deepEqual(
    once.map(({ commit, wasLeft }) => [commit, wasLeft ?? false]),
    [
      ["a", false],
      ["c", true],
      ["b", false],
    ],
  );
  assert.equal(previousVersion(once), a);
});

test("of a commit whose images changed, the version is found that was not rolled back from", () => {
  const [one, two, three] = ["one", "two", "three"].map((id) => version("a", id));
  assert.ok(one && two && three);
  const once = withReturnTo([one, two, three], two, "now");
  assert.equal(previousVersion(once, "a"), one);
});

test("a version that is gone back to keeps which one-shot services ran in it", () => {
  const target = { ...b, ran: ["migrate"] };
  assert.deepEqual(withReturnTo([a, target, c], target, "now").at(-1)?.ran, ["migrate"]);
});

test("the version to go back to is found in a file that was read again", () => {
  const { commit, images, finishedAt } = b;
  const once = withReturnTo([a, b, c], { commit, images, finishedAt }, "now");
  assert.deepEqual(
    once.map((version) => version.commit),
    ["a", "c", "b"],
  );
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
