import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { createTaskReport } from "../../../src/rollout/swarm/wait-for-services.ts";
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
