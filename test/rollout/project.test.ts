import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../src/platform/compose.ts";
import type { Container } from "../../src/platform/docker/containers.ts";
import {
  type Action,
  modeOf,
  planService,
  type RolloutService,
  readProject,
  refuseOtherHome,
} from "../../src/rollout/project.ts";
import type { Version } from "../../src/rollout/state.ts";
import { isProblem } from "../harness/problems.ts";
import { sampleContainer, sampleService } from "./sample.ts";

function readServices(services: Readonly<Record<string, ComposeService>>) {
  return readProject({ name: "shop", services }).services;
}

test("a service may end if nothing in the file says that it keeps running", () => {
  const endings: readonly (readonly [ComposeService, boolean])[] = [
    [{}, true],
    [{ restart: "no" }, true],
    [{ restart: "on-failure:3" }, true],
    [{ restart: "unless-stopped" }, false],
    [{ deploy: { restart_policy: { condition: "any" } } }, false],
    [{ healthcheck: { interval: "2s" } }, false],
    [{ healthcheck: { disable: true } }, true],
    [{ labels: { "hotpush.check": "http://localhost/" } }, false],
  ];
  for (const [app, mayEnd] of endings)
    assert.equal(readServices({ app })[0]?.mayEnd, mayEnd, JSON.stringify(app));
});

test("a pre_start that compose would skip beside the old container is refused; one of a recreated service is not", () => {
  const pre_start = [{ image: "migrate:3" }, {}];
  const recreated = { pre_start, labels: { "hotpush.rollout": "recreate" } };
  assert.throws(
    () => readServices({ app: { pre_start } }),
    isProblem("compose_invalid", /service_completed_successfully/),
  );
  assert.deepEqual(readServices({ app: recreated })[0]?.hookImages, ["migrate:3"]);
});

test("an image without a name in the file has compose's", () => {
  const model = { name: "shop", services: { app: { build: { context: "." } }, web: { image: "site" } } };
  const names = (separator?: string) => readProject(model, separator).services.map(({ image }) => image);
  assert.deepEqual(
    [names(), names("_")],
    [
      ["shop-app", "site"],
      ["shop_app", "site"],
    ],
  );
});

test("a container may take a minute, or until Docker's verdict, or as the label says", () => {
  const label = "hotpush.healthy-timeout";
  const timeoutMs = (app: ComposeService) => readServices({ app })[0]?.healthyTimeoutMs;
  assert.equal(timeoutMs({}), 60_000);
  const quick = { interval: "1s", timeout: "1s", start_period: "5s" };
  assert.equal(timeoutMs({ healthcheck: quick }), 60_000);
  const slow = { start_period: "1m59.5s", interval: "10s", timeout: "5s", retries: 4 };
  assert.equal(timeoutMs({ healthcheck: slow }), 119_500 + 4 * 15_000 + 10_000);
  assert.equal(timeoutMs({ healthcheck: slow, labels: { [label]: "90s" } }), 90_000);
  for (const text of ["90", "0s", "", "soon"])
    assert.throws(() => timeoutMs({ labels: { [label]: text } }), isProblem("compose_invalid"), text);
});

test("a new version is guarded for 10 s, or as the label says, and not at all with 0", () => {
  const guardOf = (labels: Readonly<Record<string, string>>) => readServices({ app: { labels } })[0]?.guardMs;
  const labels = [{}, { "hotpush.guard": "1m" }, { "hotpush.guard": "0" }];
  assert.deepEqual(labels.map(guardOf), [10_000, 60_000, 0]);
  assert.throws(() => guardOf({ "hotpush.guard": "long" }), isProblem("compose_invalid"));
});

const volume = { type: "volume", source: "data", target: "/app/data" };
const bind = (source: string, target: string) => ({ type: "bind", source, target });
const labelled = (how: string) => ({ labels: { "hotpush.rollout": how } });

test("a service is recreated if another is bound to its container", () => {
  for (const bound of [{ network_mode: "service:app" }, { pid: "service:app" }, { links: ["app:api"] }]) {
    const project = readProject({ name: "shop", services: { app: { image: "app" }, other: bound } });
    const modes = project.services.map(({ mode }) => mode.how);
    assert.equal(modes[0], "recreate", JSON.stringify(bound));
  }
});

test("two cannot run of a service that clashes with itself, or writes to a volume", () => {
  const recreated: readonly (readonly [string, ComposeService])[] = [
    ["publishes port 80", { ports: [{ published: "80", target: 80 }] }],
    ["publishes port 80", { ports: [{ published: "80" }], ...labelled("live") }],
    ["container_name shop", { container_name: "shop" }],
    ["network_mode host", { network_mode: "host" }],
    ["pid service:app", { pid: "service:app" }],
    ["fixed address 10.0.0.5", { networks: { default: { ipv4_address: "10.0.0.5" } } }],
    ["label hotpush.rollout=recreate", labelled("recreate")],
    ["volume /app/data", { volumes: [volume] }],
    ["volume /data", { volumes: [bind("/srv/shop/data", "/data")] }],
  ];
  for (const [reason, service] of recreated) {
    assert.deepEqual(modeOf(service, false), { how: "recreate", reason });
    assert.deepEqual(modeOf(service, true), { how: "run-once" }, "others await it");
  }
});

test("two can run of any other service", () => {
  const rolled: readonly ComposeService[] = [
    { ports: [{ target: 80 }] },
    { volumes: [volume], ...labelled("live") },
    { volumes: [{ ...volume, read_only: true }] },
    { volumes: [{ type: "volume", target: "/data" }] },
    { volumes: [bind("/srv/a.yml", "/etc/a.yml")] },
    { volumes: [bind("/var/run/docker.sock", "/docker.sock")] },
    { volumes: [{ type: "volume", source: "live", target: "/run/live" }] },
  ];
  for (const service of rolled) assert.equal(modeOf(service, false).how, "roll", JSON.stringify(service));
  assert.throws(() => modeOf(labelled("rolling"), false), isProblem("compose_invalid", /"rolling"/));
});

const upToDate = { imageId: "sha256:1", configHashes: new Set(["hash"]), isChanged: false };
const recreate = { how: "recreate", reason: "publishes port 80" } as const;
const once = { how: "run-once" } as const;
const byLabel = { mode: { how: "roll", isByLabel: true } } as const;
const anonymous = [{ type: "volume", name: "a".repeat(64), source: "", target: "/data" }];
const named = [{ type: "volume", name: "shop_data", source: "", target: "/data" }];
const exited = { status: "exited", health: null } as const;
const good: Version = { commit: "1".repeat(40), finishedAt: "", images: {} };

type Case = readonly [
  kind: Action["kind"],
  containers: readonly Partial<Container>[],
  service?: Partial<RolloutService>,
  version?: Version | null,
  current?: Version | null,
];

function assertPlans(cases: readonly Case[]): void {
  for (const [kind, containers, service = {}, version = null, current = null] of cases) {
    const found = containers.map((container) => sampleContainer(container));
    const planned = planService({ version, current, service: sampleService(service) }, found, upToDate);
    assert.equal(planned.kind, kind, JSON.stringify([service, containers]));
  }
}

const image = { image: "sha256:0" };
const single = { mode: recreate };

test("a service is left if its containers are complete, current and well; else replaced", () => {
  assertPlans([
    ["start", []],
    ["leave", [{}]],
    ["roll", [image]],
    ["roll", [{ configHash: "other" }]],
    ["roll", [{ health: "unhealthy" }]],
    ["roll", [{}], { replicas: 2 }],
    ["roll", [{ number: 1 }, { number: 2, ...image }], { replicas: 2 }],
    ["leave", [{}], single],
    ["recreate", [image], single],
    ["recreate", [], single],
    // What an interrupted roll-out has recreated.
    ["recreate", [{ health: "unhealthy" }], single, null, good],
    ["leave", [{}], single, null, good],
    ["leave", [{ health: "unhealthy" }], single],
  ]);
});

test("an only container with an anonymous volume is recreated, unless a label says how", () => {
  assertPlans([
    ["recreate", [{ ...image, mounts: anonymous }]],
    ["leave", [{ health: "unhealthy", mounts: anonymous }]],
    ["roll", [{ ...image, mounts: anonymous }], byLabel],
    ["roll", [{ ...image, mounts: named }]],
  ]);
});

test("a one-shot service runs in each roll-out, and not in a roll back", () => {
  const migration = { mode: once };
  const seed = { mayEnd: true };
  const old = { ...exited, ...image };
  assertPlans([
    ["run", [], migration],
    ["run", [exited], migration],
    ["skip", [old], migration, good],
    ["start", [exited], seed],
    ["skip", [old], seed, good],
    ["start", [{ ...exited, exitCode: 1 }], seed, good],
  ]);
});

const place = { home: "/root", projectDirectory: "/root/shop" };
const target = "/var/lib/postgresql/data";

test("a directory that was in another home is refused, with the line to write", () => {
  const text =
    /^db has \/home\/me\/pgdata at \S+, and by the compose file it would be \/root\/pgdata: .* Write the whole path: \/home\/me\/pgdata:\/var/;
  assert.throws(() => ask("/root/pgdata", "/home/me/pgdata"), isProblem("compose_invalid", text));
});

test("only a directory that lay in another home is another one", () => {
  ask("/root/pgdata", "/root/pgdata");
  ask("/srv/pgdata", "/home/me/pgdata");
  ask("/root/shop/data", "/home/me/shop/data"); // It has moved with the project.
  ask("/root/data-17", "/root/data-16"); // Somebody has chosen it.
  refuseOtherHome(model("/root/pgdata"), place, []);
});

function ask(source: string, there: string): void {
  const mounts = [{ type: "bind", name: "", source: there, target }];
  refuseOtherHome(model(source), place, [sampleContainer({ service: "db", mounts })]);
}

function model(source: string) {
  return { name: "shop", services: { db: { volumes: [{ type: "bind", source, target }] } } };
}
