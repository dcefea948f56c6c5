import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine } from "../../../src/platform/docker/engine.ts";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { chooseImages, readLiveImages } from "../../../src/rollout/swarm/prepare-stack-images.ts";
import { rollBackStack } from "../../../src/rollout/swarm/recover-stack.ts";
import { readStack, type StackRollout } from "../../../src/rollout/swarm/stack.ts";
import { readStackState } from "../../../src/rollout/swarm/swarm-service.ts";

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
