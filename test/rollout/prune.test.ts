import assert from "node:assert/strict";
import { test } from "node:test";
import { splitReference } from "../../src/platform/docker/images.ts";
import { namesToRemove } from "../../src/rollout/prune.ts";

const project = { name: "shop", images: ["shop-app"] };
const commit = "shop-app:0123456789ab";
const later = "shop-app:0123456789ab-2";

const kept = new Set(["sha256:1"]);

test("an image that nothing needs loses all names of ours", () => {
  const image = { id: "sha256:0", tags: [commit, later] };
  assert.deepEqual(namesToRemove(image, project, kept, new Set()), [commit, later]);
});

test("a name that somebody else gave keeps the image", () => {
  const image = { id: "sha256:0", tags: [commit, "registry.example/shop:v1"] };
  assert.deepEqual(namesToRemove(image, project, kept, new Set()), [commit]);
});

test("removes the images of services that have left the compose file", () => {
  const tags = ["shop-worker:latest", "shop-worker:0123456789ab", "shop-worker:mine"];
  assert.deepEqual(namesToRemove({ id: "sha256:0", tags }, project, kept, new Set()), tags.slice(0, 2));
});

test("a nameless image goes by its id", () => {
  assert.deepEqual(namesToRemove({ id: "sha256:0", tags: [] }, project, kept, new Set()), ["sha256:0"]);
});

test("a needed image keeps the names of kept versions and those not by commit", () => {
  const image = { id: "sha256:1", tags: ["shop-app:latest", commit, later] };
  assert.deepEqual(namesToRemove(image, project, kept, new Set([later])), [commit]);
});

test("an image that is needed never loses its last name", () => {
  assert.deepEqual(namesToRemove({ id: "sha256:1", tags: [commit] }, project, kept, new Set()), []);
});

test("names of images are taken apart", () => {
  assert.deepEqual(splitReference("shop-app"), { repository: "shop-app", tag: "latest" });
  assert.deepEqual(splitReference("registry:5000/a/b"), { repository: "registry:5000/a/b", tag: "latest" });
  assert.deepEqual(splitReference("registry:5000/a/b:1.2"), { repository: "registry:5000/a/b", tag: "1.2" });
});
