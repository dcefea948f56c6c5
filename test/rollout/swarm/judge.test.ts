import assert from "node:assert/strict";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose-model.ts";
import { readStack } from "../../../src/rollout/swarm/stack.ts";
import { judgeService, type Observation, observe } from "../../../src/rollout/swarm/swarm-service.ts";
import { sampleSwarmService, sampleTask, sampleUpdate } from "./sample.ts";

const old = sampleSwarmService({ update: sampleUpdate("completed", "09:00") });
const changed = { definition: "two" };
/** An update may take 20 s: 10 s to get healthy, 5 s to be placed, 5 s of `monitor`. */
const checked: ComposeService = { healthcheck: {}, labels: { "hotpush.healthy-timeout": "10s" } };
const mayEnd: ComposeService = { ...checked, deploy: { restart_policy: { condition: "none" } } };

/** A second after the deploy of a service that existed before; but for `differences`. */
function sample(differences: Partial<Observation>): Observation {
  const times = { atMs: 1_000, healthyAfterMs: null, downtimeMs: 0, steadySinceMs: 0 };
  return { before: old, now: old, ...times, ...differences };
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
    "a new service that may end has started when its task succeeded",
    started([sampleTask({ state: "complete", isWanted: false })], { runningTasks: 0, desiredTasks: 1 }),
    "started",
    mayEnd,
  ],
  [
    "a new service that may end could not be started when its task failed",
    started([sampleTask({ state: "failed" })]),
    /app could not be started/,
    mayEnd,
  ],
  [
    "an unchanged service that may end need not run again",
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

/** What is seen of a service at `atMs`, of whose two tasks so many run. */
function look(
  atMs: number,
  last: Observation | undefined,
  runningTasks: number,
  freshTasks: number,
): Observation {
  const tasks = ["a", "b"].slice(0, freshTasks).map((id) => sampleTask({ id }));
  return observe({ before: old, now: sampleSwarmService({ runningTasks, tasks }), atMs }, last);
}

test("a service is healthy when as many new tasks run as are wanted", () => {
  const one = look(200, undefined, 2, 1);
  assert.equal(one.healthyAfterMs, null);
  const both = look(400, one, 2, 2);
  assert.equal(look(600, both, 2, 2).healthyAfterMs, 400);
});

test("downtime is the time in which no task ran", () => {
  const away = look(450, look(200, undefined, 2, 0), 0, 0);
  assert.equal(look(700, away, 2, 2).downtimeMs, 250);
});

test("a service that loses a task is no longer steady", () => {
  const steady = look(200, undefined, 2, 2);
  assert.equal(look(400, steady, 2, 2).steadySinceMs, 200);
  assert.equal(look(400, steady, 1, 1).steadySinceMs, null);
});
