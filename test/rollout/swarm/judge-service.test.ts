import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Evidence,
  judgeService,
  nothingSeen,
  observe,
} from "../../../src/rollout/swarm/judge-service.ts";
import { sampleSwarmService, sampleTask, sampleUpdate } from "./sample.ts";

const old = sampleSwarmService({ update: sampleUpdate("completed", "09:00") });
const changed = { definition: "two" };

/** A second after the deploy of a service that existed before; but for `differences`. */
function sample(differences: Partial<Evidence>): Evidence {
  return {
    before: old,
    now: old,
    freshTasks: [],
    steadyMs: 1_000,
    sinceDeployMs: 1_000,
    hasHealthCheck: true,
    mayEnd: false,
    ...differences,
  };
}

function updating(state: Parameters<typeof sampleUpdate>[0]): Evidence {
  return sample({ now: sampleSwarmService({ ...changed, update: sampleUpdate(state) }) });
}

const cases: readonly (readonly [string, Evidence, ReturnType<typeof judgeService>["kind"]])[] = [
  ["an update that began since the deploy is pending while it goes on", updating("updating"), "pending"],
  ["one that is completed is updated", updating("completed"), "updated"],
  ["one that Swarm rolls back is pending until that is done", updating("rollback_started"), "pending"],
  ["one that Swarm has rolled back is rolled back", updating("rollback_completed"), "rolled_back"],
  [
    "a roll back within one poll is seen, although the service is unchanged",
    sample({ now: sampleSwarmService({ update: sampleUpdate("rollback_completed") }) }),
    "rolled_back",
  ],
  ["one that Swarm paused is paused", updating("paused"), "paused"],
  ["one whose roll back Swarm paused is paused", updating("rollback_paused"), "paused"],
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
    sample({ before: sampleSwarmService(), now: sampleSwarmService(changed), sinceDeployMs: 10_000 }),
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
    "paused",
  ],
  [
    "an unchanged service that lacks a task is pending",
    sample({ now: sampleSwarmService({ runningTasks: 1, update: old.update }) }),
    "pending",
  ],
  ["a new service with all tasks healthy is started", sample({ before: null }), "started"],
  [
    "a new service without a health check is pending until it has run for 3 s",
    sample({ before: null, hasHealthCheck: false, steadyMs: 2_900 }),
    "pending",
  ],
  [
    "a new service without a health check is started after 3 s",
    sample({ before: null, hasHealthCheck: false, steadyMs: 3_000 }),
    "started",
  ],
  [
    "a new service that lacks a task is pending",
    sample({ before: null, now: sampleSwarmService({ runningTasks: 1 }) }),
    "pending",
  ],
  [
    "a new service with a failed task could not be started",
    sample({ before: null, freshTasks: [sampleTask({ state: "failed" })] }),
    "start_failed",
  ],
  [
    "a new service with an ended task could not be started",
    sample({ before: null, freshTasks: [sampleTask({ state: "complete" })] }),
    "start_failed",
  ],
  [
    "a new service that may end has started when its task ended well",
    sample({
      before: null,
      mayEnd: true,
      now: sampleSwarmService({ runningTasks: 0, desiredTasks: 1 }),
      freshTasks: [sampleTask({ state: "complete", isWanted: false })],
    }),
    "started",
  ],
  [
    "a new service that may end could not be started when its task failed",
    sample({ before: null, mayEnd: true, freshTasks: [sampleTask({ state: "failed" })] }),
    "start_failed",
  ],
  [
    "an unchanged service that may end need not run again",
    sample({ mayEnd: true, now: sampleSwarmService({ runningTasks: 0, update: old.update }) }),
    "unchanged",
  ],
];

for (const [claim, evidence, kind] of cases) {
  test(claim, () => assert.equal(judgeService(evidence).kind, kind));
}

const freshTasks = [sampleTask({ id: "a" }), sampleTask({ id: "b" })];

test("a service is healthy when as many new tasks run as are wanted", () => {
  const one = observe(nothingSeen, sampleSwarmService(), freshTasks.slice(1), 200);
  assert.equal(one.healthyAfterMs, null);
  const both = observe(one, sampleSwarmService(), freshTasks, 400);
  assert.equal(observe(both, sampleSwarmService(), freshTasks, 600).healthyAfterMs, 400);
});

test("downtime is the time in which no task ran", () => {
  const away = sampleSwarmService({ runningTasks: 0 });
  const seen = observe(observe(nothingSeen, sampleSwarmService(), [], 200), away, [], 450);
  assert.equal(observe(seen, sampleSwarmService(), freshTasks, 700).downtimeMs, 250);
});

test("a service that loses a task is no longer steady", () => {
  const steady = observe(nothingSeen, sampleSwarmService(), freshTasks, 200);
  assert.equal(observe(steady, sampleSwarmService(), freshTasks, 400).steadySinceMs, 200);
  const lost = observe(steady, sampleSwarmService({ runningTasks: 1 }), freshTasks, 400);
  assert.equal(lost.steadySinceMs, null);
});
