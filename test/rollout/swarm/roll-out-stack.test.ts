import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import type { RolloutEvent } from "../../../src/rollout/report.ts";
import {
  chooseImages,
  createTaskReport,
  deployCommand,
  deployInput,
  onlyServices,
  readLiveImages,
  rollBackStack,
} from "../../../src/rollout/swarm/roll-out-stack.ts";
import { readStack, type StackRollout } from "../../../src/rollout/swarm/stack.ts";
import { readStackState } from "../../../src/rollout/swarm/swarm-service.ts";
import { sampleSwarmService, sampleTask } from "./sample.ts";

test("reports each change of a task once, with its error, and no earlier state", () => {
  const events: RolloutEvent[] = [];
  const old = sampleTask({ id: "old00" });
  const before = new Map([["app", sampleSwarmService({ tasks: [old] })]]);
  const reportTasks = createTaskReport((event) => events.push(event), before);
  const failed = sampleTask({ state: "failed", error: "task: non-zero exit (3)" });
  const starting = sampleTask({ state: "starting" });
  for (const task of [starting, starting, failed]) reportTasks({ name: "app", tasks: [old, task] });
  const texts = events.map((event) => (event.event === "note" ? event.text : ""));
  assert.deepEqual(texts, ["app.1.x7f2a starting", "app.1.x7f2a failed: task: non-zero exit (3)"]);
});

test("the stack is deployed from its files and, over them, from standard input", () => {
  const files = ["stack.yaml", "more.yaml", "-"];
  const images = new Map([["app", "ghcr.io/shop/app:0a1b"]]);
  const argv = deployCommand({ project: { name: "shop", services: [] }, withPull: false }, files, images);
  assert.deepEqual(argv, [
    ...["docker", "stack", "deploy"],
    ...["--compose-file", "stack.yaml", "--compose-file", "more.yaml", "--compose-file", "-"],
    ...["--detach=true", "--with-registry-auth", "--resolve-image=changed", "shop"],
  ]);
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
const image = (name: string) => ({ image: name, id: "sha256:1", tag: `${name}:111111111111` });
const version = {
  commit: "1".repeat(40),
  finishedAt: "2026-01-01T00:00:00Z",
  images: { app: image("shop-app"), migrate: image("shop-migrate") },
};

test("a job keeps its image in a roll back, so that Swarm does not run it again", async () => {
  const { rollout, events } = rolloutOn("222222222222");
  const live = await readLiveImages(rollout, await readStackState(rollout.engine, "shop"));
  const images = await chooseImages({ ...rollout, version }, stack.services, live);
  assert.deepEqual(Object.fromEntries(images), {
    app: "shop-app:111111111111",
    migrate: "shop-migrate:222222222222",
  });
  const text = "is not run in a roll back: what it changed stays as it is";
  assert.deepEqual(events, [{ event: "note", service: "migrate", text }]);
});

test("a job is not rolled back when another service fails", async () => {
  const before = await readStackState(rolloutOn("111111111111").rollout.engine, "shop");
  const { rollout, posted } = rolloutOn("222222222222");
  await rollBackStack(rollout, before);
  assert.deepEqual(posted, ["/services/app/update?version=1&rollback=previous"]);
});

/** A roll-out that was asked to stop, so it does not wait, on an engine whose services run the images of `commit`. */
function rolloutOn(commit: string) {
  const events: RolloutEvent[] = [];
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
    report: (event: RolloutEvent) => events.push(event),
  };
  return { rollout: rollout as unknown as StackRollout, events, posted };
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
