import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import { rollBackService } from "../../../src/rollout/swarm/roll-out-stack.ts";
import { readStackState } from "../../../src/rollout/swarm/swarm-service.ts";

const listed = {
  ID: "s1",
  Version: { Index: 41 },
  Spec: {
    Name: "shop_app",
    Labels: { "com.docker.stack.image": "ghcr.io/shop/app:0a1b" },
    TaskTemplate: { ContainerSpec: { Image: "ghcr.io/shop/app:0a1b@sha256:1" }, Placement: {} },
    Mode: { Replicated: { Replicas: 2 } },
  },
  ServiceStatus: { RunningTasks: 1, DesiredTasks: 2 },
};

/** An engine that lists `services` and `tasks`, and records the requests. */
function engineWith(services: readonly unknown[], tasks: readonly unknown[] = []) {
  const asked: string[] = [];
  const ask = (method: string) => async (path: string) => {
    asked.push(`${method} ${path}`);
    return Buffer.from(JSON.stringify(path.startsWith("/tasks") ? tasks : services));
  };
  const engine: Engine = { get: ask("GET"), post: ask("POST"), delete: ask("DELETE") };
  return { engine, asked };
}

test("a service and its image have the names from the stack file", async () => {
  const app = (await readStackState(engineWith([listed]).engine, "shop")).get("app");
  assert.equal(app?.image, "ghcr.io/shop/app:0a1b");
  assert.deepEqual([app?.runningTasks, app?.desiredTasks, app?.update], [1, 2, null]);
});

test("the platforms from the registry are no change of a service", async () => {
  const { TaskTemplate } = listed.Spec;
  const withPlatforms = { ...TaskTemplate, Placement: { Platforms: [{ OS: "linux" }] } };
  const other = { ...listed, Spec: { ...listed.Spec, TaskTemplate: withPlatforms } };
  const definition = async (one: unknown) =>
    (await readStackState(engineWith([one]).engine, "shop")).get("app")?.definition;
  assert.equal(await definition(other), await definition(listed));
});

test("roll back names the version it saw, so that no change in between is lost", async () => {
  const { engine, asked } = engineWith([listed]);
  const app = (await readStackState(engine, "shop")).get("app");
  if (app) await rollBackService(engine, app);
  assert.equal(asked.at(-1), "POST /services/s1/update?version=41&rollback=previous");
});

test("the tasks of a service are named for a person, oldest first", async () => {
  const tasks = [
    { ...task("running"), ID: "x7f2a9k1", CreatedAt: "10:00", Slot: 2 },
    { ...task("running"), ID: "b1c2d3e4", CreatedAt: "09:00", NodeID: "node-1" },
    { ...task("running"), ID: "other", ServiceID: "s2" },
  ];
  const app = (await readStackState(engineWith([listed], tasks).engine, "shop")).get("app");
  assert.deepEqual(
    app?.tasks.map(({ name }) => name),
    ["app.node-.b1c2d", "app.2.x7f2a"],
  );
});

/** A task in the container c1. */
function task(desiredState: string) {
  const status = { State: "running", ContainerStatus: { ContainerID: "c1" } };
  return { ID: "t1", CreatedAt: "", ServiceID: "s1", DesiredState: desiredState, Status: status };
}
