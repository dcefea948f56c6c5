import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  noReport,
  type Report,
  type RolloutEvent,
  readDeploymentReport,
  removeDeploymentReport,
  reportToService,
} from "../../src/rollout/report.ts";
import type { SiteRequests } from "../../src/site-requests.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const site: SiteRequests = {
  host: "shop.example.org",
  requests: 3,
  failed: 0,
  brokeOff: 0,
  left: 0,
  before: { answers: 1, serverErrors: 0 },
  after: { answers: 2, serverErrors: 0 },
};
const counted: RolloutEvent = { event: "requests", sites: [site], missingLines: [] };
const switched: RolloutEvent = { event: "step", service: "app", step: "switch", durationMs: 1, detail: "" };
const live = { service: "app", image: "shop-app", id: `sha256:${"a".repeat(64)}` };
const version: RolloutEvent = { event: "version", images: [live] };
const finished: RolloutEvent = { event: "finished", durationMs: 1, services: [] };
const failed: RolloutEvent = { event: "failed", code: "proxy_check_failed", detail: "", evidence: [] };

test("the service takes what the roll-out of its deployment reported", (t) => {
  const { statePath, report } = stateOf(t);
  const startedMs = Date.now();
  for (const event of [switched, version, counted, finished]) report(event);
  const taken = readDeploymentReport(statePath, 7);
  assert.deepEqual(taken.requests, [site]);
  assert.deepEqual(taken.images, [live]);
  assert.ok(Number(taken.liveAtMs) >= startedMs);
  removeDeploymentReport(statePath, 7);
  assert.deepEqual(readDeploymentReport(statePath, 7), noReport);
});

test("the service knows of a guard while it goes on, and when the version went live", (t) => {
  const { statePath, report } = stateOf(t);
  report(switched);
  assert.ok(readDeploymentReport(statePath, 7).liveAtMs !== null, "at the switch");
  report({ event: "guarding", service: "app", guardMs: 10_000 });
  const during = readDeploymentReport(statePath, 7);
  assert.ok(during.isGuarding && during.liveAtMs !== null);
  report({ ...switched, step: "guard", detail: "0 of 80 requests went wrong" });
  const guard = [{ service: "app", verdict: "0 of 80 requests went wrong" }];
  assert.deepEqual(readDeploymentReport(statePath, 7), { ...during, isGuarding: false, guard });
});

test("a version that does not serve any more has no time at which it went live", (t) => {
  const { statePath, report } = stateOf(t);
  for (const event of [switched, counted, failed]) report(event);
  assert.deepEqual(readDeploymentReport(statePath, 7), { ...noReport, requests: [site], guard: [] });
});

test("what the guard or a person takes back is reported as that", (t) => {
  const { statePath, report } = stateOf(t);
  for (const code of ["version_worse", "version_unwanted"] as const) {
    for (const event of [switched, { ...failed, code }]) report(event);
    assert.equal(readDeploymentReport(statePath, 7).isTakenBack, true);
  }
});

test("images and verdicts that are too many, or no text, are not kept, and the rest is", (t) => {
  const { statePath, report } = stateOf(t);
  const many = Array.from({ length: 51 }, () => live);
  for (const event of [switched, { ...version, images: many }, finished]) report(event);
  const { images, liveAtMs } = readDeploymentReport(statePath, 7);
  assert.deepEqual([images, liveAtMs === null], [null, false]);
  for (const odd of [
    { ...live, id: "\u001b[2J" },
    { ...live, image: "x".repeat(256) },
    { ...live, odd: 1 },
    1,
  ]) {
    const text = JSON.stringify({ liveAtMs: 5, requests: [site], images: [odd], guard: [odd] });
    writeFileSync(join(statePath, "rollout", "deployment-7.json"), text);
    const read = readDeploymentReport(statePath, 7);
    assert.deepEqual([read.images, read.guard, read.liveAtMs], [null, null, 5]);
  }
});

test("a roll-out by hand, and that of another deployment, report nothing", (t) => {
  const { statePath, report } = stateOf(t);
  report(finished);
  assert.deepEqual(readDeploymentReport(statePath, 8), noReport);
  const passed: RolloutEvent[] = [];
  const own: Report = (event) => passed.push(event);
  assert.equal(reportToService(own, statePath, undefined), own);
});

test("a directory without space, or a missing one, does not fail the roll-out", (t) => {
  const report = reportToService(() => {}, join(temporaryDirectory(t), "missing"), "7");
  assert.doesNotThrow(() => report(finished));
});

test("a pipe, a long file and no report in it are nothing", (t) => {
  const { statePath } = stateOf(t);
  const path = (id: number) => join(statePath, "rollout", `deployment-${id}.json`);
  writeFileSync(path(1), JSON.stringify({ liveAtMs: 5, requests: [site] }));
  execFileSync("mkfifo", [path(3)]);
  writeFileSync(path(4), `${" ".repeat(70_000)}{}`);
  writeFileSync(path(5), "null");
  writeFileSync(path(6), JSON.stringify({ liveAtMs: "now", requests: [{ host: 1 }] }));
  for (const id of [3, 4, 5, 6]) assert.deepEqual(readDeploymentReport(statePath, id), noReport, `${id}`);
  assert.ok(existsSync(path(1)));
});

function stateOf(t: TestContext) {
  const statePath = temporaryDirectory(t);
  mkdirSync(join(statePath, "rollout"));
  return { statePath, report: reportToService(() => {}, statePath, "7") };
}
