import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory, Rollout, ServiceRollout } from "../../src/rollout/context.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import {
  countingFile,
  createTally,
  followLog,
  guardNewVersion,
  judge,
  judgeTime,
  withRequestsCounted,
} from "../../src/rollout/requests.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import {
  engineWith,
  fakeCaddy,
  liveDirectory,
  sampleContainer,
  sampleRollout,
  sampleService,
} from "./sample.ts";

const line = `${JSON.stringify({ status: 200, answered: 200, request: { host: "a" }, upstream: "shop-app-1:80" })}\n`;

test("on the server, the log is out of reach of the projects", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests/shop.log", "shop");
  const log = join(dirname(live.path), ".requests", "shop.log");
  mkdirSync(dirname(log));
  await withRequestsCounted(rollout, new Map(), async () => appendFileSync(log, line));
  const [event] = events;
  assert.ok(event?.event === "requests");
  assert.equal(event.sites?.[0]?.requests, 1);
});

test("the log of another project on the server is not this one's", async (t) => {
  const { rollout, events } = await rolloutWith(t, "/run/live/.requests/blog.log", "shop");
  await withRequestsCounted(rollout, new Map(), async () => {});
  assert.deepEqual(events, [{ event: "requests", sites: null, missingLines: [] }]);
});

test("a count that is not possible changes nothing", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  mkdirSync(join(live.path, countingFile));
  assert.equal(await withRequestsCounted(rollout, new Map(), async () => "done"), "done");
  assert.match(JSON.stringify(events), /the requests cannot be counted: EISDIR/);
});

/** A roll-out of a project whose Caddy logs requests to `output`. */
async function rolloutWith(t: TestContext, output: string, project: string | null = null) {
  const live: LiveDirectory = liveDirectory(t, project);
  await fakeCaddy(t, live, () => ({ logs: { log0: { writer: { filename: output } } } }));
  const events: RolloutEvent[] = [];
  const rollout: Pick<Rollout, "project" | "containers" | "liveDirectory" | "liveFilesRead" | "report"> = {
    project: { name: "shop", services: [] },
    containers: [],
    liveDirectory: live,
    liveFilesRead: new Set(["app"]),
    report: (event) => events.push(event),
  };
  return { rollout, events, live };
}

test("what comes after the start is read by whole lines, also from a new log", async (t) => {
  const path = join(temporaryDirectory(t), "requests.log");
  writeFileSync(path, "before\n");
  const log = await followLog(path);
  appendFileSync(path, "one\ntw");
  assert.deepEqual(await log.read(), ["one"]);
  appendFileSync(path, "o\n");
  assert.deepEqual(await log.read(), ["two"]);
  appendFileSync(path, "old\n");
  renameSync(path, `${path}.1`);
  writeFileSync(path, "new\n");
  assert.deepEqual(await log.read(), ["old", "new"]);
  const lines = Array.from({ length: 20_000 }, (_, index) => `ü ${index} ${"x".repeat(40)}`);
  appendFileSync(path, `${lines.join("\n")}\n`);
  assert.deepEqual(await log.read(), lines, "whatever characters the pieces cut");
  await log.close();
});

test("hosts are counted without port and case; invented ones do not lengthen the list beyond twenty", () => {
  const tally = createTally(() => false);
  const invented = Array.from({ length: 1_000 }, (_, number) => `h${number}`);
  for (const host of ["a:80", "A", "[::1]:80", "[::1]", ...invented])
    tally.add(JSON.stringify({ status: 200, answered: 200, request: { host } }));
  const counted = tally.sites().map(({ host, requests }) => `${host} ${requests}`);
  assert.equal(counted.length, 21);
  assert.deepEqual([...counted.slice(0, 2), counted.at(-1)], ["a 2", "[::1] 2", "other hosts 982"]);
});

const old = sampleContainer();
const fresh = sampleContainer({ number: 2 });

test("a guard that too few requests reach to judge by is short", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 500));
  // All of them came before it began.
  for (const requests of [3, 12]) {
    const { guard, events } = guardOf(t, requests, { service: sampleService({ guardMs: 10_000 }) });
    await guard();
    const [, step] = events;
    assert.ok(step?.event === "step" && step.durationMs < 5_000);
    assert.match(step.detail, /too few requests to judge by/);
  }
});

test("a container that restarts ends the guard without any request", async (t) => {
  const { guard } = guardOf(t, 0, { engine: engineWith(() => ({ ...inspected, RestartCount: 1 })) });
  await assert.rejects(guard(), isProblem("container_not_healthy"));
});

test("nothing is guarded without a count, with the label 0, or in a roll back", async (t) => {
  const version = { commit: "1", finishedAt: "", images: {} };
  for (const differences of [{ requestCount: null }, { service: sampleService() }, { version }]) {
    const { guard, events } = guardOf(t, 60, differences);
    await guard();
    assert.deepEqual(events, []);
  }
});

const inspected = {
  Id: "x",
  Name: "x",
  Config: { Labels: {} },
  State: { Status: "running" },
  RestartCount: 0,
};

/** A guard of a minute, of a version that has failed all of its requests. */
function guardOf(t: TestContext, requests: number, differences: Partial<ServiceRollout>) {
  const events: RolloutEvent[] = [];
  const on: ServiceRollout = {
    ...sampleRollout(temporaryDirectory(t)),
    engine: engineWith(() => inspected),
    report: (event) => events.push(event),
    service: sampleService({ guardMs: 60_000 }),
    directedBy: { path: "/run/live", adminSocket: "/run/live/admin.sock", project: null },
    requestCount: (names) =>
      names.includes(fresh.name)
        ? { requests, bad: requests, durationsMs: [] }
        : { requests: 100, bad: 1, durationsMs: [] },
    ...differences,
  };
  const guard = () => guardNewVersion(on, [old], [fresh], new AbortController().signal);
  return { guard, events };
}

test("worse is two percentage points more and what chance explains, of fifty requests", () => {
  const cases: readonly (readonly [now: readonly number[], before: readonly number[], kind: string])[] = [
    [[49, 49], [0, 1_000], "too few"],
    [[50, 50], [0, 1_000], "worse"],
    [[10, 100], [100, 1_000], "good"],
    [[50, 50], [50, 50], "good"],
    [[0, 500], [0, 500], "good"],
    [[38, 1_000], [0, 1_000], "good"],
    [[39, 1_000], [0, 1_000], "worse"],
    [[4, 50], [0, 1_000], "good"],
    [[5, 50], [0, 1_000], "worse"],
    // Of what had few requests, little is known.
    [[10, 100], [0, 15], "good"],
    [[10, 100], [0, 0], "good"],
    [[45, 100], [0, 0], "worse"],
  ];
  const counted = ([bad = 0, requests = 0]: readonly number[]) => ({ bad, requests, durationsMs: [] });
  for (const [now, before, kind] of cases)
    assert.equal(judge(counted(now), counted(before)).kind, kind, `${now} after ${before}`);
});

test("slower is a fifth and 100 ms beyond the old p95, by more answers than chance explains", () => {
  const of = (count: number, ms: number, rest = 0, restMs = 0) => ({
    requests: 0,
    bad: 0,
    durationsMs: [...new Array<number>(rest).fill(restMs), ...new Array<number>(count).fill(ms)],
  });
  const cases = [
    [of(100, 210), of(100, 10), "worse"],
    [of(100, 110), of(100, 10), "good"],
    [of(49, 900), of(100, 10), "too few"],
    [of(100, 900), of(49, 10), "too few"],
    // Some are always slow, by chance or after the start.
    [of(14, 900, 86, 10), of(200, 10), "worse"],
    [of(11, 900, 89, 10), of(200, 10), "good"],
    [of(100, 1_100), of(100, 900), "good"],
    [of(50, 10), of(200, 10), "good"],
  ] as const;
  for (const [now, before, kind] of cases) assert.equal(judgeTime(now, before).kind, kind);
});
