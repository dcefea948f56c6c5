import assert from "node:assert/strict";
import { test } from "node:test";
import { namesRegistry } from "../../../src/platform/docker/images.ts";

test("a registry in an image's name has a dot or a port, or is localhost", () => {
  for (const image of ["ghcr.io/shop/app", "localhost/app", "localhost:5000/app:1", "registry:5000/app"]) {
    assert.ok(namesRegistry(image), image);
  }
  for (const image of ["app", "app:1.2", "shop/app:1.2"]) assert.ok(!namesRegistry(image), image);
});
