import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { nothingSeen, observe } from "../../../src/rollout/swarm/observation.ts";
import { tellProgress } from "../../../src/rollout/swarm/progress.ts";
import { sampleSwarmService, sampleTask } from "./sample.ts";

const fresh = [sampleTask({ id: "a" }), sampleTask({ id: "b" })];

test("a service is healthy when as many new tasks run as are wanted", () => {
  const one = observe(nothingSeen, sampleSwarmService(), fresh.slice(1), 200);
  assert.equal(one.healthyAfterMs, null);
  const both = observe(one, sampleSwarmService(), fresh, 400);
  assert.equal(observe(both, sampleSwarmService(), fresh, 600).healthyAfterMs, 400);
});

test("downtime is the time in which no task ran", () => {
  const away = sampleSwarmService({ runningTasks: 0 });
  const seen = observe(observe(nothingSeen, sampleSwarmService(), [], 200), away, [], 450);
  assert.equal(observe(seen, sampleSwarmService(), fresh, 700).downtimeMs, 250);
});

test("a service that loses a task is no longer steady", () => {
  const steady = observe(nothingSeen, sampleSwarmService(), fresh, 200);
  assert.equal(observe(steady, sampleSwarmService(), fresh, 400).steadySinceMs, 200);
  const lost = observe(steady, sampleSwarmService({ runningTasks: 1 }), fresh, 400);
  assert.equal(lost.steadySinceMs, null);
});

test("each change of a task is told once, with its error; what was so before is not told", () => {
  const events: RolloutEvent[] = [];
  const tell = tellProgress((event) => events.push(event), [sampleTask({ id: "old00" })]);
  const failed = sampleTask({ state: "failed", error: "task: non-zero exit (3)" });
  const starting = sampleTask({ state: "starting" });
  for (const task of [starting, starting, failed]) tell("app", [sampleTask({ id: "old00" }), task]);
  const texts = events.map((event) => (event.event === "note" ? event.text : ""));
  assert.deepEqual(texts, ["app.1.x7f2a starting", "app.1.x7f2a failed: task: non-zero exit (3)"]);
});
