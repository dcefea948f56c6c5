import "../harness/environment.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../src/platform/compose.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  deployInput,
  judgeService,
  readStack,
  readStackState,
  rollOutStack,
  type StackRollout,
  type SwarmService,
  undoStack,
} from "../../src/rollout/stack.ts";
import { isProblem } from "../harness/problems.ts";
import { engineWith } from "./sample.ts";

function stackService(said: ComposeService) {
  const services = { app: { image: "app", build: {}, ...said } };
  const [service] = readStack({ name: "shop", services }).services;
  assert.ok(service);
  return service;
}

test("an update starts the new task first, unless the file or two tasks speak against it", () => {
  const { startsFirst, deploy } = stackService({
    deploy: { update_config: { order: "stop-first", failure_action: "pause" } },
  });
  const update = { order: "stop-first", failure_action: "pause" };
  assert.deepEqual(deploy, { update_config: update, rollback_config: { order: "stop-first" } });
  const port = (mode: string) => stackService({ ports: [{ published: "80", target: 80, mode }] });
  const labelled = stackService({ deploy: { labels: { "hotpush.rollout": "recreate" } } });
  const first = [startsFirst, port("ingress").startsFirst, port("host").startsFirst, labelled.startsFirst];
  assert.deepEqual(first, [false, true, false, false]);
  assert.equal(port("host").deploy, undefined);
  const goesOn = { deploy: { update_config: { failure_action: "continue" } } };
  assert.throws(() => stackService(goesOn), isProblem("compose_invalid"), "a broken version would serve");
});

/** A service with two tasks of an image; but for `differences`. */
function sample(differences: Partial<SwarmService> = {}, image = "one"): SwarmService {
  return {
    ID: "service-1",
    Version: { Index: 10 },
    Spec: { Name: "shop_app", TaskTemplate: { ContainerSpec: { Image: image } } },
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
const old = sample(update("completed", "09:00"));
const went =
  /The new version of app failed, and Swarm went back to the old one \(update rollback_completed\)/;
const paused = /Swarm paused the update of app/;
/** An update may take 176 s: 125 s for the nodes, twice 10 s to get healthy, 5 s of delay and 10 s to stop, 1 s of `monitor`. */
const checked: ComposeService = {
  healthcheck: {},
  labels: { "hotpush.healthy-timeout": "10s" },
  deploy: { replicas: 2, update_config: { delay: "5s", monitor: "1s" } },
};
const mayEnd: ComposeService = { deploy: { restart_policy: { condition: "none" } } };
const onFailure: ComposeService = { ...checked, deploy: { restart_policy: { condition: "on-failure" } } };

type Case = readonly [
  claim: string,
  expected: string | RegExp,
  now: SwarmService,
  more?: { readonly before?: SwarmService | null; readonly atMs?: number; readonly said?: ComposeService },
];

const changed = (state?: string) => sample(state ? update(state) : {}, "two");
const isNew = { before: null };
const platforms = { Placement: { Platforms: [{ OS: "linux" }] } };
const resolved = {
  Spec: { ...sample().Spec, TaskTemplate: { ...sample().Spec.TaskTemplate, ...platforms } },
};
const pausedEarlier = sample(update("paused"));

const cases: readonly Case[] = [
  ["an update goes on", "pending", changed("updating")],
  ["an update is done", "updated", changed("completed")],
  ["Swarm goes back", "pending", changed("rollback_started")],
  ["Swarm went back", went, changed("rollback_completed")],
  ["Swarm paused an update", paused, changed("paused")],
  ["a roll back within one poll", went, sample(update("rollback_completed"))],
  ["a change, an earlier status", "pending", sample(update("completed", "09:00"), "two")],
  ["a change without new tasks", "unchanged", changed(), { before: sample(), atMs: 10_000 }],
  ["no change but the image's platforms", "unchanged", sample(resolved), { before: sample() }],
  ["no change, paused earlier", paused, pausedEarlier, { before: pausedEarlier }],
  ["no change, a task is missing", "pending", sample(oneRuns), { before: sample() }],
  ["new and healthy", "started", sample(), isNew],
  ["new, without a check", "pending", sample(), { ...isNew, atMs: 9_900, said: {} }],
  ["new, without a check, still there", "started", sample(), { ...isNew, atMs: 10_000, said: {} }],
  ["new, a task is missing", "pending", sample(oneRuns), isNew],
  ["new, a task failed", /could not be started/, sample(tasks("failed")), isNew],
  ["it may end", "unchanged", sample(oneRuns), { before: sample(), said: mayEnd }],
  ["it has a check, so it is no job", "pending", changed("updating"), { said: onFailure }],
  ["an update takes too long", /not done after 2 min 57 s/, changed("updating"), { atMs: 177_000 }],
  ["a roll back has as much time again", "pending", changed("rollback_started"), { atMs: 351_000 }],
];

test("each state of a service since the deploy is judged", () => {
  for (const [claim, expected, now, { before = old, atMs = 1_000, said = checked } = {}] of cases) {
    const judgement = judgeService(stackService(said), { before, now, atMs });
    if (typeof judgement === "string") assert.equal(judgement, expected, claim);
    else assert.match(judgement.failure, expected as RegExp, claim);
  }
});

test("the input names images by commit, start-first, but not with a writable volume", () => {
  const data = { type: "volume", source: "data", target: "/data" };
  const services = { app: { image: "shop-app", build: {} }, db: { volumes: [data] } };
  const input = deployInput(readStack({ name: "shop", services }).services, new Map([["app", "shop-app:1"]]));
  const [order, failure_action] = ["start-first", "rollback"];
  const deploy = { update_config: { order, failure_action }, rollback_config: { order } };
  assert.deepEqual(JSON.parse(input), { services: { app: { image: "shop-app:1", deploy }, db: {} } });
});

test("a stack is rolled out as a whole: a service's name is refused before anything is read", async () => {
  const asked = { names: ["app"] } as unknown as Parameters<typeof rollOutStack>[0];
  await assert.rejects(rollOutStack(asked), isProblem("compose_invalid", /name no service/));
});

test("a job is not rolled back when another service fails, and the change in between is not lost", async () => {
  const posted: string[] = [];
  const at = (commit: string): Engine => ({
    ...engineWith((path) =>
      path.startsWith("/services") ? ["app", "migrate"].map(serviceWith(commit)) : [],
    ),
    post: async (path) => Buffer.from(String(posted.push(path))),
  });
  const job = { deploy: { mode: "replicated-job" } };
  const project = readStack({ name: "shop", services: { app: {}, migrate: job } });
  const before = await readStackState({ engine: at("1"), project });
  const on = { engine: at("2"), project, signal: AbortSignal.abort(), report: () => {} };
  await undoStack(on as unknown as StackRollout, before, {});
  assert.deepEqual(posted, ["/services/app/update?version=1&rollback=previous"]);
});

function serviceWith(commit: string) {
  return (name: string) => {
    const TaskTemplate = { ContainerSpec: { Image: `shop-${name}:${commit}` } };
    return { ID: name, Version: { Index: 1 }, Spec: { Name: `shop_${name}`, TaskTemplate } };
  };
}

test("a pre_start in a stack is left for Docker to refuse: our advice would be for compose", () => {
  const { services } = readStack({ name: "shop", services: { app: { pre_start: [{ image: "a" }] } } });
  assert.deepEqual(services[0]?.hookImages, []);
});
