import assert from "node:assert/strict";
import { test } from "node:test";
import {
  machineFilesAt,
  machinePathOf,
  machineStateAt,
  newMachineStatePath,
  projectNetwork,
  projectOfNetwork,
  serviceAlias,
} from "../../src/config/machine-part.ts";

test("the machine part of root is in the directories of the system", () => {
  assert.equal(machinePathOf({ HOME: "/root" }, true), "/etc/hotpush");
  assert.equal(newMachineStatePath({ HOME: "/root" }, true), "/var/lib/hotpush");
});

test("the machine part of another user is in the XDG directories", () => {
  assert.equal(machinePathOf({ HOME: "/home/ann" }, false), "/home/ann/.config/hotpush");
  assert.equal(newMachineStatePath({ HOME: "/home/ann" }, false), "/home/ann/.local/state/hotpush");
  const env = { HOME: "/home/ann", XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s" };
  assert.equal(machinePathOf(env, false), "/c/hotpush");
  assert.equal(newMachineStatePath(env, false), "/s/hotpush");
});

test("with MACHINE_PATH, the state is inside it", () => {
  const env = { MACHINE_PATH: "/tmp/second", HOME: "/root" };
  assert.equal(machinePathOf(env, true), "/tmp/second");
  assert.equal(newMachineStatePath(env, true), "/tmp/second/state");
});

test("files and state are where the service looks for them", () => {
  assert.equal(machineFilesAt("/etc/hotpush").projectsPath, "/etc/hotpush/projects");
  assert.equal(machineStateAt("/var/lib/hotpush").live, "/var/lib/hotpush/live");
});

test("a project's network has its name, and other networks belong to no project", () => {
  assert.equal(projectOfNetwork(projectNetwork("shop")), "shop");
  for (const name of ["hotpush", "hotpush-", "hotpush-receive", "shop_default"]) {
    assert.equal(projectOfNetwork(name), null, name);
  }
});

test("Caddy's network sorts before every network of a project", () => {
  assert.deepEqual([projectNetwork("0"), "hotpush"].sort(), ["hotpush", "hotpush-0"]);
});

test("services of different projects have different names on the networks", () => {
  assert.equal(serviceAlias("web", "shop"), "web.shop.containers.internal");
});
