import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import type { ComposeService } from "../../src/platform/compose-model.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  deployInput,
  judgeService,
  type Observation,
  onlyServices,
  readStackState,
  rollBackStack,
} from "../../src/rollout/roll-out-stack.ts";
import { readStack, type StackRollout } from "../../src/rollout/stack.ts";
import { sampleSwarmService, sampleTask, sampleUpdate } from "./stack-sample.ts";

const old = sampleSwarmService({ update: sampleUpdate("completed", "09:00") });
const changed = { definition: "two" };
/** An update may take 20 s: 10 s to get healthy, 5 s to be placed, 5 s of `monitor`. */
const checked: ComposeService = { healthcheck: {}, labels: { "hotpush.healthy-timeout": "10s" } };
const mayEnd: ComposeService = { ...checked, deploy: { restart_policy: { condition: "none" } } };

/** A second after the deploy of a service that existed before; but for `differences`. */
function sample(differences: Partial<Observation>): Observation {
  const { atMs = 1_000 } = differences;
  return { before: old, now: old, atMs, steadyMs: atMs, ...differences };
}

function updating(state: Parameters<typeof sampleUpdate>[0]): Observation {
  return sample({ now: sampleSwarmService({ ...changed, update: sampleUpdate(state) }) });
}

function started(tasks: readonly ReturnType<typeof sampleTask>[], differences = {}): Observation {
  return sample({ before: null, now: sampleSwarmService({ tasks, ...differences }) });
}

function judge(said: ComposeService, seen: Observation): ReturnType<typeof judgeService> {
  const [service] = readStack({
    name: "shop",
    services: { app: { image: "app", build: {}, ...said } },
  }).services;
  assert.ok(service);
  return judgeService(service, seen);
}

const cases: readonly (readonly [string, Observation, string | RegExp, ComposeService?])[] = [
  ["an update that began since the deploy is pending while it goes on", updating("updating"), "pending"],
  ["one that is completed is updated", updating("completed"), "updated"],
  ["one that Swarm rolls back is pending until that is done", updating("rollback_started"), "pending"],
  [
    "one that Swarm has rolled back is rolled back",
    updating("rollback_completed"),
    /The new version of app failed, and Swarm went back to the old one \(update rollback_completed\)/,
  ],
  [
    "a roll back within one poll is seen, although the service is unchanged",
    sample({ now: sampleSwarmService({ update: sampleUpdate("rollback_completed") }) }),
    /The new version of app failed, and Swarm went back to the old one \(update rollback_completed\)/,
  ],
  ["one that Swarm paused is paused", updating("paused"), /Swarm paused the update of app/],
  [
    "one whose roll back Swarm paused is paused",
    updating("rollback_paused"),
    /Swarm paused the update of app/,
  ],
  [
    "a changed service with the status of an earlier update is pending",
    sample({ now: sampleSwarmService({ ...changed, update: old.update }) }),
    "pending",
  ],
  [
    "a changed service without a status is pending",
    sample({ before: sampleSwarmService(), now: sampleSwarmService(changed) }),
    "pending",
  ],
  [
    "a change that needs no new tasks is unchanged if Swarm starts no update",
    sample({ before: sampleSwarmService(), now: sampleSwarmService(changed), atMs: 10_000 }),
    "unchanged",
  ],
  ["an unchanged service with an old status is unchanged", sample({}), "unchanged"],
  [
    "an unchanged service without a status is unchanged",
    sample({ before: sampleSwarmService(), now: sampleSwarmService() }),
    "unchanged",
  ],
  [
    "an unchanged service that was rolled back earlier is unchanged",
    sample({
      before: sampleSwarmService({ update: sampleUpdate("rollback_completed") }),
      now: sampleSwarmService({ update: sampleUpdate("rollback_completed") }),
    }),
    "unchanged",
  ],
  [
    "an unchanged service whose earlier update is paused stays a failure",
    sample({
      before: sampleSwarmService({ update: sampleUpdate("paused") }),
      now: sampleSwarmService({ update: sampleUpdate("paused") }),
    }),
    /Swarm paused the update of app/,
  ],
  [
    "an unchanged service that lacks a task is pending",
    sample({ now: sampleSwarmService({ runningTasks: 1, update: old.update }) }),
    "pending",
  ],
  ["a new service with all tasks healthy is started", sample({ before: null }), "started"],
  [
    "a new service without a health check is pending until it has run for 3 s",
    sample({ before: null, atMs: 2_900 }),
    "pending",
    {},
  ],
  [
    "a new service without a health check is started after 3 s",
    sample({ before: null, atMs: 3_000 }),
    "started",
    {},
  ],
  [
    "a new service that lacks a task is pending",
    sample({ before: null, now: sampleSwarmService({ runningTasks: 1 }) }),
    "pending",
  ],
  [
    "a new service with a failed task could not be started",
    started([sampleTask({ state: "failed" })]),
    /app could not be started/,
  ],
  [
    "a new service with an ended task could not be started",
    started([sampleTask({ state: "complete" })]),
    /app could not be started/,
  ],
  [
    "a service that may end is not waited for",
    sample({ now: sampleSwarmService({ runningTasks: 0, update: old.update }) }),
    "unchanged",
    mayEnd,
  ],
  [
    "a job is not awaited",
    sample({ before: null, now: sampleSwarmService({ isJob: true, runningTasks: 0 }) }),
    "unchanged",
  ],
  [
    "an update that takes longer than it may has failed",
    { ...updating("updating"), atMs: 21_000 },
    /The update of app was not done after 21 s/,
  ],
  [
    "a roll back by Swarm gets as much time again",
    { ...updating("rollback_started"), atMs: 39_000 },
    "pending",
  ],
];

for (const [claim, seen, expected, said = checked] of cases) {
  test(claim, () => {
    const judgement = judge(said, seen);
    if (typeof judgement === "string") assert.equal(judgement, expected);
    else assert.match(judgement.failure, expected as RegExp);
  });
}

test("the input names images by commit, start-first, but not with a writable volume", () => {
  const data = { type: "volume", source: "data", target: "/data" };
  const { services } = readStack({
    name: "shop",
    services: { app: { image: "shop-app", build: {} }, web: { image: "web" }, db: { volumes: [data] } },
  });
  const startFirst = {
    update_config: { order: "start-first", failure_action: "rollback" },
    rollback_config: { order: "start-first" },
  };
  assert.deepEqual(JSON.parse(deployInput(services, new Map([["app", "shop-app:0a1b"]]))), {
    services: {
      app: { image: "shop-app:0a1b", deploy: startFirst },
      web: { deploy: startFirst },
      db: {},
    },
  });
});

const file = `version: "3.13"
services:
  "123":
    image: a
  app:
    environment:
      MODE: 010
      FLAG: "on"
      NONE: null
      LONG: ${"a long value ".repeat(12)}end
      TEXT: |
        services:
          hotpush:

        volumes:
    image: shop-app
  hotpush:
    image: hotpush
volumes:
  state: {}
`;

/** Newer versions of docker indent by four. */
const indented = file.replace(/^ +/gm, (spaces) => spaces + spaces);

for (const [text, width] of [
  [file, "two"],
  [indented, "four"],
] as const) {
  test(`keeps the named services and everything that is no service (indent ${width})`, async () => {
    const whole = parse(text);
    const { app, hotpush } = whole.services;
    assert.deepEqual(parse(await onlyServices(text, ["app"])), { ...whole, services: { app } });
    const both = parse(await onlyServices(text, ["hotpush", "123"]));
    assert.deepEqual(both, { ...whole, services: { "123": { image: "a" }, hotpush } });
  });
}

test("keeps the text of every value: Docker reads YAML 1.1", async () => {
  const names = ["123", "app", "hotpush"];
  assert.equal(await onlyServices(file, names), file);
  assert.match(await onlyServices(file, ["app"]), /MODE: 010\n {6}FLAG: "on"\n {6}NONE: null\n/);
});

test("all services are the whole file, even if nothing follows them", async () => {
  const short = file.slice(0, file.indexOf("volumes:\n  state"));
  assert.equal(await onlyServices(short, ["123", "app", "hotpush"]), short);
});

const stack = readStack({
  name: "shop",
  services: {
    app: { build: ".", image: "shop-app" },
    migrate: { build: ".", image: "shop-migrate" },
  },
});
test("a job is not rolled back when another service fails, and the change in between is not lost", async () => {
  const before = await readStackState(rolloutOn("111111111111").rollout.engine, "shop");
  const { rollout, posted } = rolloutOn("222222222222");
  await rollBackStack(rollout, before, new Map());
  assert.deepEqual(posted, ["/services/app/update?version=1&rollback=previous"]);
});

/** A roll-out that was asked to stop, so it does not wait, on an engine whose services run the images of `commit`. */
function rolloutOn(commit: string) {
  const posted: string[] = [];
  const listed = [
    serviceOf("app", { Replicated: { Replicas: 1 } }, commit),
    serviceOf("migrate", { ReplicatedJob: {} }, commit),
  ];
  const engine: Engine = {
    get: async (path) => Buffer.from(JSON.stringify(answerTo(path, listed))),
    post: async (path) => {
      posted.push(path);
      return Buffer.alloc(0);
    },
    delete: async () => Buffer.alloc(0),
  };
  const rollout = {
    engine,
    project: stack,
    signal: AbortSignal.abort(),
    report: () => {},
  };
  return { rollout: rollout as unknown as StackRollout, posted };
}

function answerTo(path: string, listed: readonly object[]): object {
  if (path.startsWith("/services")) return listed;
  return path.startsWith("/images") ? { Id: "sha256:2", RepoTags: [], Size: 0, Created: "2026-01-01" } : [];
}

function serviceOf(name: string, mode: object, commit: string): object {
  const spec = {
    Name: `shop_${name}`,
    TaskTemplate: { ContainerSpec: { Image: `shop-${name}:${commit}` } },
    Mode: mode,
  };
  return { ID: name, Version: { Index: 1 }, Spec: spec };
}

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

/** An engine that lists `services` and `tasks`. */
function engineWith(services: readonly unknown[], tasks: readonly unknown[] = []): Engine {
  const get = async (path: string) =>
    Buffer.from(JSON.stringify(path.startsWith("/tasks") ? tasks : services));
  return { get, post: get, delete: get };
}

test("a service and its image have the names from the stack file", async () => {
  const app = (await readStackState(engineWith([listed]), "shop")).get("app");
  assert.equal(app?.image, "ghcr.io/shop/app:0a1b");
  assert.deepEqual([app?.runningTasks, app?.desiredTasks, app?.update], [1, 2, null]);
});

test("the platforms from the registry are no change of a service", async () => {
  const { TaskTemplate } = listed.Spec;
  const withPlatforms = { ...TaskTemplate, Placement: { Platforms: [{ OS: "linux" }] } };
  const other = { ...listed, Spec: { ...listed.Spec, TaskTemplate: withPlatforms } };
  const definition = async (one: unknown) =>
    (await readStackState(engineWith([one]), "shop")).get("app")?.definition;
  assert.equal(await definition(other), await definition(listed));
});

test("the tasks of a service are named for a person, oldest first", async () => {
  const tasks = [
    { ...task("running"), ID: "x7f2a9k1", CreatedAt: "10:00", Slot: 2 },
    { ...task("running"), ID: "b1c2d3e4", CreatedAt: "09:00", NodeID: "node-1" },
    { ...task("running"), ID: "other", ServiceID: "s2" },
  ];
  const app = (await readStackState(engineWith([listed], tasks), "shop")).get("app");
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
