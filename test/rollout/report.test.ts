import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import {
  noReport,
  outcomeOf,
  type RolloutEvent,
  readDeploymentReport,
  removeDeploymentReport,
  reportText,
  reportToService,
} from "../../src/rollout/report.ts";
import type { SiteRequests } from "../../src/site-requests.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The lines of `events`, as a person sees them. */
function linesOf(...events: readonly RolloutEvent[]): readonly string[] {
  let text = "";
  const report = reportText((written) => {
    text += written;
  });
  for (const event of events) report(event);
  return text.split("\n").slice(0, -1);
}

const longWord = "https://registry.example.org/".repeat(6);
const sentence = `It is ${"rather long, ".repeat(20)}and has ${longWord} in it.`;
const site: SiteRequests = {
  host: "www.storefront.example.org",
  requests: 12_431,
  failed: 12,
  brokeOff: 3,
  left: 4_000,
  before: { answers: 1_000, serverErrors: 1 },
  after: { answers: 1_000, serverErrors: 2 },
};

test("no line is wider than 80 columns, but for a word, which can be copied", () => {
  const web = { name: "web-frontend-production" };
  const containers = [12, 13].map((number) => ({ name: `storefront-production-web-frontend-${number}` }));
  const seen = { healthyAfterMs: 2_140, drainedMs: 510, downtimeMs: 4_100, reason: "publishes port 5432" };
  const services = [outcomeOf(web, "recreated", { old: containers, new: containers }, seen)];
  const lines = linesOf(
    { event: "note", service: web.name, text: sentence },
    { event: "requests", sites: [site], missingLines: [] },
    { event: "requests", sites: null, missingLines: [] },
    { event: "finished", durationMs: 1, services },
  );
  for (const line of lines) assert.ok(line.length <= 80 || line.includes(longWord), line);
});

test("a failure is told in the last line, which the history quotes", () => {
  const failed = { event: "failed", code: "build_failed", detail: sentence, evidence: ["why"] } as const;
  assert.deepEqual(linesOf(failed), ["", "    why", `FAILED: ${sentence}`]);
});

test("output of a container cannot control the terminal, and is not broken", () => {
  const red = "\u001b]0;owned\u0007\u001b[31mred\u001b[0m\u0008\u0000";
  const evidence = [red, "x".repeat(200)];
  const lines = linesOf({ event: "failed", code: "container_not_healthy", detail: "No.", evidence });
  assert.deepEqual(lines, ["", "    red", `    ${"x".repeat(200)}`, "FAILED: No."]);
});

const counted: RolloutEvent = { event: "requests", sites: [site], missingLines: [] };
const switched: RolloutEvent = { event: "step", service: "app", step: "switch", durationMs: 1, detail: "" };
const live = { service: "app", image: "shop-app", id: `sha256:${"a".repeat(64)}` };
const version: RolloutEvent = { event: "version", images: [live] };
const finished: RolloutEvent = { event: "finished", durationMs: 1, services: [] };
const failed: RolloutEvent = { event: "failed", code: "proxy_check_failed", detail: "", evidence: [] };

test("the service takes what the roll-out of its deployment reported, also while a guard goes on", (t) => {
  const { statePath, report } = stateOf(t);
  const startedMs = Date.now();
  report(switched);
  report({ event: "guarding", service: "app", guardMs: 10_000 });
  const during = readDeploymentReport(statePath, 7);
  assert.ok(during.isGuarding && Number(during.liveAtMs) >= startedMs);
  const guard = ["quiet", "app"].map((service) => ({ service, verdict: "0 of 80 requests went wrong" }));
  report({ event: "guarding", service: "quiet", guardMs: 10_000 });
  for (const { service, verdict } of guard) {
    assert.ok(readDeploymentReport(statePath, 7).isGuarding, "until the last one's guard ends");
    report({ ...switched, service, step: "guard", detail: verdict });
  }
  for (const event of [version, counted, finished]) report(event);
  const expected = { ...during, isGuarding: false, guard, requests: [site], images: [live] };
  assert.deepEqual(readDeploymentReport(statePath, 7), expected);
  assert.deepEqual(readDeploymentReport(statePath, 8), noReport, "of another deployment");
  removeDeploymentReport(statePath, 7);
  assert.deepEqual(readDeploymentReport(statePath, 7), noReport);
});

test("a version that does not serve any more was never live; who took it back is told", (t) => {
  const { statePath, report } = stateOf(t);
  for (const code of ["proxy_check_failed", "version_worse", "version_unwanted"] as const) {
    report(switched);
    const back = { ...switched, step: "roll back" } as const;
    for (const event of [back, { ...switched, detail: "FAILED" }]) {
      report(event);
      assert.equal(readDeploymentReport(statePath, 7).liveAtMs, null, "also while it goes back");
    }
    for (const event of [switched, { ...failed, code }]) report(event);
    const { liveAtMs, isTakenBack } = readDeploymentReport(statePath, 7);
    assert.deepEqual([liveAtMs, isTakenBack], [null, code !== "proxy_check_failed"]);
  }
});

test("images, verdicts and requests that are too many, or no text, are not kept, and the rest is", (t) => {
  const { statePath, report } = stateOf(t);
  const many = Array.from({ length: 51 }, () => live);
  for (const event of [switched, { ...version, images: many }, finished]) report(event);
  const { images, liveAtMs } = readDeploymentReport(statePath, 7);
  assert.deepEqual([images, liveAtMs === null], [null, false]);
  for (const odd of [{ ...live, id: "\u001b[2J" }, { ...live, image: "x".repeat(256) }, 1]) {
    const requests = [{ ...site, host: "\u001b[2J" }];
    const text = JSON.stringify({ liveAtMs: 5, requests, images: [odd], guard: [odd] });
    writeFileSync(join(statePath, "rollout", "deployment-7.json"), text);
    const read = readDeploymentReport(statePath, 7);
    assert.deepEqual([read.images, read.guard, read.requests, read.liveAtMs], [null, null, null, 5]);
  }
});

test("a pipe, a long file and no report in it are nothing", (t) => {
  const { statePath } = stateOf(t);
  const path = (id: number) => join(statePath, "rollout", `deployment-${id}.json`);
  execFileSync("mkfifo", [path(3)]);
  writeFileSync(path(4), `${" ".repeat(70_000)}{}`);
  writeFileSync(path(5), "null");
  writeFileSync(path(6), JSON.stringify({ liveAtMs: "now", requests: [{ host: 1 }] }));
  for (const id of [3, 4, 5, 6]) assert.deepEqual(readDeploymentReport(statePath, id), noReport, `${id}`);
});

function stateOf(t: TestContext) {
  const statePath = temporaryDirectory(t);
  mkdirSync(join(statePath, "rollout"));
  return { statePath, report: reportToService(() => {}, statePath, "7") };
}
