import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import { isBeingStopped } from "../../../src/rollout/swarm/own-task.ts";

const project = { name: "shop", services: [] };
const own = { id: "c1", service: "hotpush" };

test("a task that Swarm no longer wants is being stopped", async () => {
  assert.equal(await isBeingStopped({ engine: engineWith("shutdown"), project, own }), true);
});

test("a task that Swarm wants is not being stopped, even if others are", async () => {
  assert.equal(await isBeingStopped({ engine: engineWith("running"), project, own }), false);
  const other = { ...own, id: "c2" };
  assert.equal(await isBeingStopped({ engine: engineWith("shutdown"), project, own: other }), false);
});

test("outside of a task the engine is not asked", async () => {
  const nobody = () => assert.fail("the engine was asked");
  const engine: Engine = { get: nobody, post: nobody, delete: nobody };
  assert.equal(await isBeingStopped({ engine, project, own: null }), false);
});

/** An engine with one task, in container c1. */
function engineWith(desiredState: string): Engine {
  const status = { State: "running", ContainerStatus: { ContainerID: "c1" } };
  const task = {
    ID: "t1",
    CreatedAt: "",
    ServiceID: "s1",
    Slot: 1,
    DesiredState: desiredState,
    Status: status,
  };
  const answer = async () => Buffer.from(JSON.stringify([task]));
  return { get: answer, post: answer, delete: answer };
}
