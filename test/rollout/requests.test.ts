import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory, Rollout, ServiceRollout } from "../../src/rollout/context.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import {
  countingFile,
  createTally,
  expectedAnswers,
  followLog,
  guardNewVersion,
  judge,
  judgeSilence,
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

test("the answers of new containers count, however compose joins their names", async (t) => {
  const { rollout, events, live } = await rolloutWith(t, "/run/live/.requests.log");
  const of = (container: string) => line.replace("shop-app-1", container);
  const lines = ["shop-app-1", "shop_app_1", "shopping-app-1"].map(of).join("");
  await withRequestsCounted(rollout, new Map(), async () =>
    appendFileSync(join(live.path, ".requests.log"), lines),
  );
  const [event] = events;
  assert.ok(event?.event === "requests");
  assert.deepEqual(event.sites?.[0]?.after, { answers: 2, serverErrors: 0 });
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

test("a request of ours is found by the port that it names, and counts as nobody's", async () => {
  const tally = createTally(() => true);
  const logged = tally.leaveOut("a:12345");
  for (const host of ["a:12345", "a", "a:12346"]) tally.add(line.replace('"a"', JSON.stringify(host)));
  assert.equal((await logged())?.container, "shop-app-1");
  assert.equal(tally.sites()[0]?.requests, 2);
  assert.equal(tally.to(["shop-app-1"]).requests, 2);
  assert.equal(tally.isBlind(), false);
});

test("a log that lacks an answered request of ours is not believed to show others", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 1_000));
  const tally = createTally(() => true);
  assert.equal(await tally.leaveOut("a:12345")(), null);
  assert.ok(tally.isBlind());
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

test("a guard takes its whole time if answers should have come, or if it cannot see them", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 500));
  for (const seen of [{ pace: 5 }, { isBlind: true }]) {
    const { guard, events } = guardOf(t, 0, { service: sampleService({ guardMs: 10_000 }) }, seen);
    await guard();
    const [, step] = events;
    assert.ok(step?.event === "step" && step.durationMs >= 10_000, JSON.stringify(step));
    assert.equal(/does not show/.test(step.detail), seen.isBlind === true);
  }
});

test("a version whose requests all wait goes back, without an answer to judge by", async (t) => {
  const live = liveDirectory(t);
  await fakeCaddy(t, live, () => [{ address: `${fresh.name}:8080`, num_requests: 3 }]);
  const differences = { directedBy: live, service: sampleService({ guardMs: 3_000 }) };
  await assert.rejects(guardOf(t, 0, differences, { pace: 20 }).guard(), isProblem("version_worse"));
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
function guardOf(
  t: TestContext,
  requests: number,
  differences: Partial<ServiceRollout>,
  { pace = 0, isBlind = false }: { readonly pace?: number; readonly isBlind?: boolean } = {},
) {
  // Of the old version before the switch, which is now.
  const switchedAtMs = performance.now();
  const durationsMs = new Array<number>(10 * pace).fill(10);
  const answeredAtMs = durationsMs.map((_, index) => switchedAtMs - index * (1_000 / pace));
  const events: RolloutEvent[] = [];
  const on: ServiceRollout = {
    ...sampleRollout(temporaryDirectory(t)),
    engine: engineWith(() => inspected),
    report: (event) => events.push(event),
    service: sampleService({ guardMs: 60_000 }),
    directedBy: { path: "/run/live", adminSocket: "/run/live/admin.sock", project: null },
    requestCount: {
      to: (hosts) => {
        if (hosts.includes(fresh.name)) return { requests, bad: requests, durationsMs: [], answeredAtMs: [] };
        return hosts.includes(old.name)
          ? { requests: 100, bad: 1, durationsMs, answeredAtMs }
          : { requests: 0, bad: 0, durationsMs: [], answeredAtMs: [] };
      },
      leaveOut: () => async () => null,
      isBlind: () => isBlind,
    },
    ...differences,
  };
  const guard = () => guardNewVersion(on, [old], [fresh], switchedAtMs, new AbortController().signal);
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
  const counted = ([bad = 0, requests = 0]: readonly number[]) => {
    return { bad, requests, durationsMs: [], answeredAtMs: [] };
  };
  for (const [now, before, kind] of cases)
    assert.equal(judge(counted(now), counted(before)).kind, kind, `${now} after ${before}`);
});

test("silence is worse where the old version's pace lets expect answers, and requests have none", () => {
  const cases = [
    // Nobody asks any more.
    [0, 0, 100, "good"],
    [0, 1, 100, "worse"],
    [0, 20, 9, "good"],
    [19, 19, 100, "worse"],
    // One stream beside a site that became quieter.
    [5, 1, 100, "good"],
    [20, 40, 100, "good"],
  ] as const;
  for (const [answers, unanswered, expected, kind] of cases) {
    const verdict = judgeSilence(answers, unanswered, expected);
    assert.equal(verdict.kind, kind, `${answers} answers, ${unanswered} without, of ${expected}`);
  }
});

test("answers are expected at the last pace of the old version, and as late as it gave them", () => {
  const of = (count: number, everyMs: number, durationMs: number) => ({
    requests: count,
    bad: 0,
    durationsMs: new Array<number>(count).fill(durationMs),
    answeredAtMs: Array.from({ length: count }, (_, index) => 60_000 - index * everyMs),
  });
  const cases = [
    [of(50, 200, 10), 50],
    [of(200, 10, 10), 200],
    // Streams of a minute, traffic of long ago, and a few requests just before the switch.
    [of(50, 200, 60_000), 0],
    [{ ...of(50, 200, 10), answeredAtMs: new Array<number>(50).fill(40_000) }, 0],
    [of(3, 10, 10), 3],
  ] as const;
  for (const [before, expected] of cases)
    assert.equal(Math.round(expectedAnswers(before, 60_000, 10_000)), expected);
});

test("slower is a fifth and 100 ms beyond the old p95, by more answers than chance explains", () => {
  const of = (count: number, ms: number, rest = 0, restMs = 0) => ({
    requests: 0,
    bad: 0,
    answeredAtMs: [],
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
