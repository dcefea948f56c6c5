import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
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
    dependsOn: [],
    replicas: 3,
    replacement: { how: "roll" },
    mayEnd: false,
    healthyTimeoutMs: 60_000,
    drainTimeoutMs: null,
    checkUrl: "http://localhost/",
    guardMs: 10_000,
  });
});

const endings: readonly (readonly [string, ComposeService, boolean])[] = [
  ["a service without a restart policy", {}, true],
  ['a service with restart: "no"', { restart: "no" }, true],
  ["a service that restarts on failure", { restart: "on-failure:3" }, true],
  ["a service that always restarts", { restart: "unless-stopped" }, false],
  ["a service that deploy restarts", { deploy: { restart_policy: { condition: "any" } } }, false],
  ["a service with a health check", { healthcheck: { interval: "2s" } }, false],
  ["a service with a disabled health check", { healthcheck: { disable: true } }, true],
  ["a service that is asked through the proxy", { labels: { "hotpush.check": "http://localhost/" } }, false],
];

for (const [what, service, mayEnd] of endings) {
  test(`${what} ${mayEnd ? "may" : "must not"} end`, () => {
    const [only] = readProject({ name: "shop", services: { app: service } }).services;
    assert.equal(only?.mayEnd, mayEnd);
  });
}
