import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory, Rollout } from "../../../src/rollout/context.ts";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { countingFile, countingLines, requestsLog } from "../../../src/rollout/requests/caddy-lines.ts";
import { withRequestsCounted } from "../../../src/rollout/requests/count-requests.ts";
import { fakeCaddy, liveDirectory } from "../proxy/fake-caddy.ts";

const line = `${JSON.stringify({ status: 200, answered: 200, request: { host: "a" }, upstream: "shop-app-1:80" })}\n`;

test("Caddy logs requests only while the work lasts, and what comes then is reported after it", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  appendFileSync(requestsLog(live.path, null), line);
  const result = await withRequestsCounted(rollout, async () => {
    assert.ok(existsSync(join(live.path, countingFile)));
    appendFileSync(requestsLog(live.path, null), line.repeat(3));
    return "done";
  });
  assert.equal(result, "done");
  assert.ok(!existsSync(join(live.path, countingFile)));
  const [event] = events;
  assert.ok(event?.event === "requests");
  assert.equal(event.sites?.[0]?.requests, 3);
});

test("a roll-out that fails reports the requests too", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  const failing = withRequestsCounted(rollout, async () => {
    throw new Error("the new version is bad");
  });
  await assert.rejects(failing, /the new version is bad/);
  assert.deepEqual(events, [{ event: "requests", sites: [], missingLines: [] }]);
  assert.ok(!existsSync(join(live.path, countingFile)));
});

test("without the log in Caddy's configuration, its lines are reported", async (t) => {
  const { rollout, events } = await rolloutWith(t, "/var/log/access.log");
  await withRequestsCounted(rollout, async () => {});
  assert.deepEqual(events, [
    { event: "requests", sites: null, missingLines: countingLines("/run/live", null) },
  ]);
});

test("on the machine part, the log is out of reach of the projects", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests/shop.log", "shop");
  const log = join(dirname(live.path), ".requests", "shop.log");
  mkdirSync(dirname(log));
  await withRequestsCounted(rollout, async () => appendFileSync(log, line));
  const [event] = events;
  assert.ok(event?.event === "requests");
  assert.equal(event.sites?.[0]?.requests, 1);
});

test("the log of another project on the machine part is not this one's", async (t) => {
  const { rollout, events } = await rolloutWith(t, "/run/live/.requests/blog.log", "shop");
  await withRequestsCounted(rollout, async () => {});
  assert.deepEqual(events, [{ event: "requests", sites: null, missingLines: [] }]);
});

test("a count that is not possible changes nothing", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  mkdirSync(join(live.path, countingFile));
  assert.equal(await withRequestsCounted(rollout, async () => "done"), "done");
  assert.match(JSON.stringify(events), /the requests cannot be counted: EISDIR/);
});

/** A roll-out of a project whose Caddy logs requests to `output`. */
async function rolloutWith(t: TestContext, output: string, project: string | null = null) {
  const live: LiveDirectory = liveDirectory(t, project);
  await fakeCaddy(t, live, () => ({ logs: { log0: { writer: { filename: output } } } }));
  const events: RolloutEvent[] = [];
  const none = async () => Buffer.from("[]");
  const rollout: Pick<Rollout, "engine" | "project" | "liveDirectory" | "liveFilesRead" | "report"> = {
    engine: { get: none, post: none, delete: none },
    project: { name: "shop", services: [] },
    liveDirectory: live,
    liveFilesRead: new Set(["app"]),
    report: (event) => events.push(event),
  };
  return { rollout, events, live };
}
