import assert from "node:assert/strict";
import { test } from "node:test";
import {
  buildCommand,
  pullCommand,
  recreateCommand,
  runOnceCommand,
  scaleUpCommand,
} from "../../src/platform/compose.ts";

const target = { projectDirectory: "/srv/shop", files: ["compose.yaml", "prod.yaml"] };
const start = ["docker", "compose", "--progress", "plain", "--project-directory", "/srv/shop"];
const files = ["--file", "compose.yaml", "--file", "prod.yaml"];

test("each compose command is this list of arguments", () => {
  assert.deepEqual(buildCommand(target, ["app", "worker"]), [...start, ...files, "build", "app", "worker"]);
  assert.deepEqual(pullCommand(target, ["db"]), [...start, ...files, "pull", "--ignore-buildable", "db"]);
});

test("scaling up leaves old containers, dependencies and the image alone", () => {
  const up = ["up", "--detach", "--no-deps", "--no-build", "--no-recreate", "--scale", "app=2", "app"];
  assert.deepEqual(scaleUpCommand(target, [{ service: "app", count: 2 }]), [...start, ...files, ...up]);
});

test("a service is recreated alone", () => {
  const up = ["up", "--detach", "--no-deps", "--no-build", "db"];
  assert.deepEqual(recreateCommand(target, "db"), [...start, ...files, ...up]);
});

test("a service that runs once gets a new container each time", () => {
  const up = ["up", "--detach", "--no-deps", "--no-build", "--force-recreate", "migrate"];
  assert.deepEqual(runOnceCommand(target, "migrate"), [...start, ...files, ...up]);
});

test("a project with a name of its own is passed by that name", () => {
  const named = { projectDirectory: "/srv/shop", files: [], projectName: "store" };
  assert.deepEqual(buildCommand(named, ["app"]), [...start, "--project-name", "store", "build", "app"]);
});
