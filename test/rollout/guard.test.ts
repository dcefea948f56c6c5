import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Answered, ServiceRollout } from "../../src/rollout/context.ts";
import type { RolloutEvent } from "../../src/rollout/report.ts";
import { giveGuardOrder, guardNewVersion, judge, judgeTime } from "../../src/rollout/requests.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { sampleContainer, sampleRollout, sampleService } from "./sample.ts";

const old = sampleContainer();
const fresh = sampleContainer({ number: 2 });
const longMs = 60_000;

test("a version that is as good as the one before passes when its time is over", async (t) => {
  const { guard, events } = guardOf(t, { guardMs: 300, now: { requests: 60, bad: 0, durationsMs: [] } });
  await guard();
  assert.deepEqual(events[0], { event: "guarding", service: "app", guardMs: 300 });
  assert.match(
    JSON.stringify(events[1]),
    /"step":"guard".*0 of 60 requests went wrong \(0 %\), before 1 of 100/,
  );
});

test("a guard that too few requests reach to judge by is short", async (t) => {
  const { guard, events } = guardOf(t, { guardMs: 30_000, now: { requests: 3, bad: 3, durationsMs: [] } });
  const startedMs = performance.now();
  await guard();
  assert.ok(performance.now() - startedMs < 20_000);
  assert.match(JSON.stringify(events[1]), /too few requests to judge by/);
});

test("a guard that a newer push ends takes a version back that was slower so far", async (t) => {
  const slow = { requests: 60, bad: 0, durationsMs: new Array<number>(60).fill(400) };
  const fast = { ...slow, durationsMs: new Array<number>(60).fill(10) };
  const to = (names: readonly string[]) => (names.includes(fresh.name) ? slow : fast);
  const { guard, ordersPath } = guardOf(t, {
    guardMs: longMs,
    now: slow,
    differences: { requestCount: { to } },
  });
  giveGuardOrder(ordersPath, 7, "end");
  await assert.rejects(guard(), isProblem("version_worse"));
});

test("a container that restarts ends the guard without any request", async (t) => {
  const { guard } = guardOf(t, {
    guardMs: longMs,
    now: { requests: 0, bad: 0, durationsMs: [] },
    restarts: 1,
  });
  await assert.rejects(guard(), isProblem("container_not_healthy"));
});

test("nothing is guarded without a count, with the label 0, or in a roll back", async (t) => {
  const version = { commit: "1", finishedAt: "", images: {} };
  for (const differences of [{ requestCount: null }, { service: sampleService() }, { version }]) {
    const { guard, events } = guardOf(t, {
      guardMs: longMs,
      now: { requests: 60, bad: 60, durationsMs: [] },
      differences,
    });
    await guard();
    assert.deepEqual(events, []);
  }
});

interface Situation {
  readonly guardMs: number;
  readonly now: Answered;
  readonly restarts?: number;
  readonly differences?: Partial<ServiceRollout> | undefined;
}

function guardOf(t: TestContext, situation: Situation) {
  const { guardMs, now, restarts = 0, differences } = situation;
  const statePath = temporaryDirectory(t);
  const ordersPath = join(statePath, "orders");
  const env = { DEPLOY_ID: "7", HOTPUSH_ORDERS: ordersPath };
  const events: RolloutEvent[] = [];
  const service = sampleService({ guardMs });
  const directory = { path: "/run/live", adminSocket: "/run/live/admin.sock", project: null };
  const report = (event: RolloutEvent) => void events.push(event);
  const on: ServiceRollout = {
    ...sampleRollout(statePath, { report, env, engine: engineWith(restarts) }),
    service,
    liveDirectory: directory,
    requestCount: {
      to: (names) => (names.includes(fresh.name) ? now : { requests: 100, bad: 1, durationsMs: [] }),
    },
    ...differences,
  };
  const guard = () => guardNewVersion(on, [old], [fresh], new AbortController().signal);
  return { guard, events, ordersPath };
}

/** An engine whose containers run, and have restarted so often. */
function engineWith(restarts: number) {
  const inspected = {
    Id: fresh.id,
    Name: `/${fresh.name}`,
    Image: "x",
    RestartCount: restarts,
    Created: "2026-01-01",
    Config: { Image: "x", Labels: {} },
    State: { Status: "running", ExitCode: 0 },
  };
  const answer = async () => Buffer.from(JSON.stringify(inspected));
  return { get: answer, post: answer, delete: answer };
}

test("worse is two percentage points more and what chance explains, of fifty requests", () => {
  const cases: readonly (readonly [now: readonly number[], before: readonly number[], kind: string])[] = [
    [[49, 49], [0, 1_000], "too few"],
    [[50, 50], [0, 1_000], "worse"],
    [[10, 100], [100, 1_000], "good"],
    [[50, 50], [50, 50], "good"],
    [[0, 500], [0, 500], "good"],
    [[33, 1_000], [0, 1_000], "good"],
    [[34, 1_000], [0, 1_000], "worse"],
    [[3, 50], [0, 1_000], "good"],
    [[4, 50], [0, 1_000], "worse"],
    [[10, 100], [0, 0], "worse"],
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
