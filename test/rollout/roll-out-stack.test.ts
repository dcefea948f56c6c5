import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import type { ComposeService } from "../../src/platform/compose-model.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  deployInput,
  judgeService,
  onlyServices,
  readStackState,
  rollBackStack,
  type SwarmService,
} from "../../src/rollout/roll-out-stack.ts";
import { readStack, type StackRollout } from "../../src/rollout/stack.ts";

/** A service with two tasks of an image; but for `differences`. */
function sample(differences: Partial<SwarmService> = {}, image = "one"): SwarmService {
  return {
    ID: "service-1",
    Version: { Index: 10 },
    Spec: { Name: "shop_app", TaskTemplate: { ContainerSpec: { Image: image } }, Mode: {} },
    ServiceStatus: { RunningTasks: 2, DesiredTasks: 2 },
    tasks: [],
    ...differences,
  };
}

function update(State: string, StartedAt = "10:00"): Partial<SwarmService> {
  return { UpdateStatus: { State, StartedAt, Message: `update ${State}` } };
}

function tasks(State: string): Partial<SwarmService> {
  const task = { ID: "x7f2a9k1", CreatedAt: "", ServiceID: "service-1", DesiredState: "running" };
  return { tasks: [{ ...task, Status: { State } }] };
}

const oneRuns = { ServiceStatus: { RunningTasks: 1, DesiredTasks: 2 } };
const job = { Spec: { ...sample().Spec, Mode: { ReplicatedJob: {} } } };
const old = sample(update("completed", "09:00"));
const went =
  /The new version of app failed, and Swarm went back to the old one \(update rollback_completed\)/;
const paused = /Swarm paused the update of app/;
/** An update may take 20 s: 10 s to get healthy, 5 s to be placed, 5 s of `monitor`. */
const checked: ComposeService = { healthcheck: {}, labels: { "hotpush.healthy-timeout": "10s" } };
const mayEnd: ComposeService = { ...checked, deploy: { restart_policy: { condition: "none" } } };

interface Case {
  readonly claim: string;
  readonly before?: SwarmService | null;
  readonly now: SwarmService;
  readonly atMs?: number;
  readonly said?: ComposeService;
  readonly expected: string | RegExp;
}

const cases: readonly Case[] = [
  ...(
    [
      ["updating", "pending"],
      ["completed", "updated"],
      ["rollback_started", "pending"],
      ["rollback_completed", went],
      ["paused", paused],
      ["rollback_paused", paused],
    ] as const
  ).map(([state, expected]) => ({
    claim: `an update since the deploy that is ${state}`,
    now: sample(update(state), "two"),
    expected,
  })),
  { claim: "a roll back within one poll", now: sample(update("rollback_completed")), expected: went },
  {
    claim: "a change with an earlier update's status",
    now: sample(update("completed", "09:00"), "two"),
    expected: "pending",
  },
  { claim: "a change without a status", before: sample(), now: sample({}, "two"), expected: "pending" },
  {
    claim: "a change without new tasks, later",
    before: sample(),
    now: sample({}, "two"),
    atMs: 10_000,
    expected: "unchanged",
  },
  { claim: "no change, with an old status", now: old, expected: "unchanged" },
  {
    claim: "no change, rolled back earlier",
    before: sample(update("rollback_completed")),
    now: sample(update("rollback_completed")),
    expected: "unchanged",
  },
  {
    claim: "no change, paused earlier",
    before: sample(update("paused")),
    now: sample(update("paused")),
    expected: paused,
  },
  { claim: "no change, a task is missing", before: sample(), now: sample(oneRuns), expected: "pending" },
  { claim: "a new service that is healthy", before: null, now: sample(), expected: "started" },
  {
    claim: "a new one without a check after 2.9 s",
    before: null,
    now: sample(),
    atMs: 2_900,
    said: {},
    expected: "pending",
  },
  {
    claim: "a new one without a check after 3 s",
    before: null,
    now: sample(),
    atMs: 3_000,
    said: {},
    expected: "started",
  },
  { claim: "a new one, a task is missing", before: null, now: sample(oneRuns), expected: "pending" },
  {
    claim: "a new one, a task failed",
    before: null,
    now: sample(tasks("failed")),
    expected: /app could not be started/,
  },
  {
    claim: "a new one, a task ended",
    before: null,
    now: sample(tasks("complete")),
    expected: /app could not be started/,
  },
  {
    claim: "a service that may end",
    before: sample(),
    now: sample(oneRuns),
    said: mayEnd,
    expected: "unchanged",
  },
  { claim: "a job", before: null, now: sample({ ...oneRuns, ...job }), expected: "unchanged" },
  {
    claim: "an update that takes too long",
    now: sample(update("updating"), "two"),
    atMs: 21_000,
    expected: /not done after 21 s/,
  },
  {
    claim: "a roll back has as much time again",
    now: sample(update("rollback_started"), "two"),
    atMs: 39_000,
    expected: "pending",
  },
];

test("each state of a service since the deploy is judged", () => {
  for (const { claim, before = old, now, atMs = 1_000, said = checked, expected } of cases) {
    const services = { app: { image: "app", build: {}, ...said } };
    const [service] = readStack({ name: "shop", services }).services;
    assert.ok(service);
    const judgement = judgeService(service, { before, now, atMs, steadyMs: atMs });
    if (typeof judgement === "string") assert.equal(judgement, expected, claim);
    else assert.match(judgement.failure, expected as RegExp, claim);
  }
});

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
  await rollBackStack(rollout, before, {});
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
