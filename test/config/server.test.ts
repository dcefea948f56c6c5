import assert from "node:assert/strict";
import { test } from "node:test";
import {
  newServerStatePath,
  projectNetwork,
  projectOfNetwork,
  serverPathOf,
} from "../../src/config/server.ts";

test("the server is in the directories of the system, or in SERVER_PATH with its state", () => {
  assert.deepEqual([serverPathOf({}), newServerStatePath({})], ["/etc/hotpush", "/var/lib/hotpush"]);
  const env = { SERVER_PATH: "/tmp/second" };
  assert.deepEqual([serverPathOf(env), newServerStatePath(env)], ["/tmp/second", "/tmp/second/state"]);
});

test("a project's network has its name, and other networks belong to no project", () => {
  assert.equal(projectOfNetwork(projectNetwork("shop")), "shop");
  for (const name of ["hotpush", "hotpush-", "hotpush-front", "shop_default"]) {
    assert.equal(projectOfNetwork(name), null, name);
  }
});
