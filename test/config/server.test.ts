import assert from "node:assert/strict";
import { test } from "node:test";
import {
  newServerStatePath,
  projectNetwork,
  projectOfNetwork,
  serverPathOf,
} from "../../src/config/server.ts";

test("the server of root is in the directories of the system", () => {
  assert.equal(serverPathOf({ HOME: "/root" }, true), "/etc/hotpush");
  assert.equal(newServerStatePath({ HOME: "/root" }, true), "/var/lib/hotpush");
});

test("the server of another user is in the XDG directories", () => {
  assert.equal(serverPathOf({ HOME: "/home/ann" }, false), "/home/ann/.config/hotpush");
  assert.equal(newServerStatePath({ HOME: "/home/ann" }, false), "/home/ann/.local/state/hotpush");
  const env = { HOME: "/home/ann", XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s" };
  assert.equal(serverPathOf(env, false), "/c/hotpush");
  assert.equal(newServerStatePath(env, false), "/s/hotpush");
});

test("with SERVER_PATH, the state is inside it", () => {
  const env = { SERVER_PATH: "/tmp/second", HOME: "/root" };
  assert.equal(serverPathOf(env, true), "/tmp/second");
  assert.equal(newServerStatePath(env, true), "/tmp/second/state");
});

test("a project's network has its name, and other networks belong to no project", () => {
  assert.equal(projectOfNetwork(projectNetwork("shop")), "shop");
  for (const name of ["hotpush", "hotpush-", "hotpush-front", "shop_default"]) {
    assert.equal(projectOfNetwork(name), null, name);
  }
});
