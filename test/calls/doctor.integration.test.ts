import assert from "node:assert/strict";
import { test } from "node:test";
import { callRun } from "../../src/calls/client.ts";
import type { ExaminationJson } from "../../src/calls/shapes.ts";
import { startAnswering, untilAnswering } from "../harness/hotpush.ts";
import { makeMachine } from "../harness/machine.ts";
import { makeProject } from "../harness/repository.ts";
import { until } from "../harness/until.ts";

const longestMs = 60_000;

test("the doctor's report of a project comes when it is done, and the answer at once", async (t) => {
  const machine = makeMachine(t);
  machine.addProject("shop", makeProject(t).repoPath);
  const service = await machine.start("all");
  await untilAnswering(service);
  const look = () => callRun(service.statePath, "doctor", { project: "shop" });
  const first = await look();
  assert.deepEqual(first, { project: "shop", isRunning: true, examinedAt: null, report: null });
  const { report, examinedAt } = await until("the report", async () => doneOf(await look()), longestMs);
  assert.ok(examinedAt);
  const subjects = report.checks.map(({ subject }) => subject);
  assert.ok(subjects.length > 20, subjects.join(", "));
  assert.ok(report.passed > 0);
  // Those who look soon after get the same result.
  assert.deepEqual(await look(), { project: "shop", isRunning: false, examinedAt, report });
});

test("a service whose secret is in its environment leaves the doctor to the shell", async (t) => {
  const { statePath } = await startAnswering(t);
  await assert.rejects(callRun(statePath, "doctor", { project: "_" }), /Run hotpush doctor on the server/);
});

function doneOf({ report, examinedAt }: ExaminationJson) {
  return report && { report, examinedAt };
}
