import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../src/platform/compose-model.ts";
import {
  defaultHealthyTimeoutMs,
  durationLabelMs,
  parseGoDurationMs,
  readProject,
  replacementOf,
} from "../../src/rollout/project.ts";
import { isProblem } from "../harness/problems.ts";

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

test("Go's durations are read", () => {
  assert.equal(parseGoDurationMs("1m30s"), 90_000);
  assert.equal(parseGoDurationMs("500ms"), 500);
  assert.equal(parseGoDurationMs("1h0m0.5s"), 3_600_500);
  for (const text of ["", "5", "5 s", "s", "1m-3s"]) assert.equal(parseGoDurationMs(text), null, text);
});

test("the time-out is a minute without a health check, or with a quick one", () => {
  assert.equal(defaultHealthyTimeoutMs(undefined), 60_000);
  assert.equal(defaultHealthyTimeoutMs({ interval: "1s", timeout: "1s", start_period: "5s" }), 60_000);
});

test("the time-out covers a long start period, and Docker's own verdict", () => {
  const healthcheck = { start_period: "2m", interval: "10s", timeout: "5s", retries: 4 };
  assert.equal(defaultHealthyTimeoutMs(healthcheck), 120_000 + 4 * 15_000 + 10_000);
});

test("a new version is guarded for 10 s, or as the label says, and not at all with 0", () => {
  const guardOf = (labels: Readonly<Record<string, string>>) =>
    readProject({ name: "shop", services: { app: { labels } } }).services[0]?.guardMs;
  assert.deepEqual(
    [{}, { "hotpush.guard": "1m" }, { "hotpush.guard": "0" }].map(guardOf),
    [10_000, 60_000, 0],
  );
  assert.throws(
    () => guardOf({ "hotpush.guard": "long" }),
    isProblem("compose_invalid", /hotpush\.guard is "long"/),
  );
});

const label = "hotpush.healthy-timeout";

test("a label with a duration is read, and one that is absent is null", () => {
  assert.equal(durationLabelMs({ labels: { [label]: "90s" } }, label), 90_000);
  assert.equal(durationLabelMs({ labels: {} }, label), null);
  assert.equal(durationLabelMs({}, label), null);
});

for (const text of ["90", "0s", "", "soon"]) {
  test(`"${text}" is refused`, () => {
    const refused = isProblem(
      "compose_invalid",
      /hotpush\.healthy-timeout is ".*", not a duration such as 90s/,
    );
    assert.throws(() => durationLabelMs({ labels: { [label]: text } }, label), refused);
  });
}

const volume = { type: "volume", source: "data", target: "/app/data" };
const recreated: readonly (readonly [string, ComposeService])[] = [
  ["publishes port 80", { ports: [{ published: "80", target: 80 }] }],
  ["container_name shop", { container_name: "shop" }],
  ["network_mode host", { network_mode: "host" }],
  ["network_mode service:vpn", { network_mode: "service:vpn" }],
  ["fixed address 10.0.0.5", { networks: { default: { ipv4_address: "10.0.0.5" } } }],
  ["label hotpush.rollout=recreate", { labels: { "hotpush.rollout": "recreate" } }],
  ["volume /app/data", { volumes: [volume] }],
  ["volume /data", { volumes: [{ type: "bind", source: "/srv/shop/data", target: "/data" }] }],
  ["volume /app/a.db", { volumes: [{ type: "bind", source: "/srv/a.db", target: "/app/a.db" }] }],
];

for (const [reason, service] of recreated) {
  test(`two cannot run: ${reason}`, () => {
    assert.deepEqual(replacementOf(service, false), { how: "recreate", reason });
  });
}

const bind = (source: string, target: string) => ({ type: "bind", source, target });
const rolled: readonly (readonly [string, ComposeService])[] = [
  ["a service without a volume, whatever its image", { image: "postgres:17" }],
  ["a port that Docker chooses", { ports: [{ target: 80 }] }],
  ["a volume whose label says so", { volumes: [volume], labels: { "hotpush.rollout": "live" } }],
  ["a read-only volume", { volumes: [{ ...volume, read_only: true }] }],
  ["an anonymous volume", { volumes: [{ type: "volume", target: "/data" }] }],
  ["a file of configuration", { volumes: [bind("/srv/a.yml", "/etc/a.yml")] }],
  ["a socket", { volumes: [bind("/var/run/docker.sock", "/docker.sock")] }],
  ["the clock", { volumes: [bind("/etc/localtime", "/etc/localtime")] }],
  ["the live files", { volumes: [{ type: "volume", source: "live", target: "/run/live" }] }],
];

for (const [what, service] of rolled) {
  test(`two can run: ${what}`, () => {
    assert.equal(replacementOf(service, false).how, "roll");
  });
}

test("the label scale is for proxies that watch Docker", () => {
  assert.deepEqual(replacementOf({ labels: { "hotpush.rollout": "scale" } }, false), { how: "scale" });
});

test("no label makes two containers share a port", () => {
  const service = { labels: { "hotpush.rollout": "live" }, ports: [{ published: "80" }] };
  assert.deepEqual(replacementOf(service, false), { how: "recreate", reason: "publishes port 80" });
});

const clashing: readonly (readonly [string, ComposeService])[] = [
  ["a published port", { ports: [{ published: "80", target: 80 }] }],
  ["a container_name", { container_name: "shop-migrate" }],
  ["the host's network", { network_mode: "host" }],
  ["the label recreate", { labels: { "hotpush.rollout": "recreate" } }],
  ["the label live", { labels: { "hotpush.rollout": "live" } }],
  ["a volume", { volumes: [volume] }],
];

for (const [what, service] of clashing) {
  test(`a service that others await runs once in spite of ${what}`, () => {
    assert.deepEqual(replacementOf(service, true), { how: "run-once" });
  });
}

test("a misspelt label is refused", () => {
  assert.throws(
    () => replacementOf({ labels: { "hotpush.rollout": "rolling" } }, false),
    /"rolling", not one of live, scale/,
  );
});
