import assert from "node:assert/strict";
import { test } from "node:test";
import { readProject } from "../../../src/rollout/compose/project.ts";

test("services come after those they depend on", () => {
  const { services } = readProject({
    name: "shop",
    services: {
      app: {
        image: "app",
        depends_on: { db: {}, migrate: { condition: "service_completed_successfully" } },
      },
      db: { image: "postgres:17" },
      migrate: { image: "app", depends_on: { db: { condition: "service_healthy" } } },
    },
  });
  assert.deepEqual(
    services.map(({ name }) => name),
    ["db", "migrate", "app"],
  );
});

test("a service that others wait for to end runs once", () => {
  const completed = { migrate: { condition: "service_completed_successfully" } };
  const { services } = readProject({
    name: "shop",
    services: { app: { image: "app", depends_on: completed }, migrate: { image: "app" } },
  });
  assert.deepEqual(
    services.map(({ name, replacement }) => [name, replacement.how]),
    [
      ["migrate", "run-once"],
      ["app", "roll"],
    ],
  );
});

test("image, replicas and labels are read as compose prints them", () => {
  const model = {
    name: "shop",
    services: {
      app: {
        build: { context: "." },
        deploy: { replicas: 3 },
        labels: { "hotpush.check": "http://localhost/" },
      },
    },
  };
  const [app] = readProject(model).services;
  assert.deepEqual(app, {
    name: "app",
    image: "shop-app",
    isBuilt: true,
    hasBuild: true,
    networks: [],
    replicas: 3,
    replacement: { how: "roll" },
    healthyTimeoutMs: 60_000,
    drainTimeoutMs: null,
    checkUrl: "http://localhost/",
  });
});
