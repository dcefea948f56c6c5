import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ServiceRollout } from "../../../src/rollout/context.ts";
import { guardNewVersion } from "../../../src/rollout/guard/guard.ts";
import { giveGuardOrder } from "../../../src/rollout/guard/order.ts";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import type { Answered } from "../../../src/rollout/requests/tally.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { sampleContainer, sampleRequest, sampleService } from "../sample.ts";

const [old, fresh] = [sampleContainer(), sampleContainer({ number: 2 })];
const longMs = 60_000;

test("a version that is as good as the one before passes when its time is over", async (t) => {
  const { guard, events } = guardOf(t, { guardMs: 300, now: { requests: 60, bad: 0 } });
  await guard();
  assert.deepEqual(events[0], { event: "guarding", service: "app", guardMs: 300 });
  assert.match(
    JSON.stringify(events[1]),
    /"step":"guard".*0 of 60 requests went wrong \(0 %\), before 1 of 100/,
  );
});

test("a version that is worse ends the guard at once, with the counts", async (t) => {
  const { guard } = guardOf(t, { guardMs: longMs, now: { requests: 60, bad: 60 } });
  await assert.rejects(
    guard(),
    isProblem("version_worse", /60 of 60 requests went wrong \(100 %\), before 1 of 100/),
  );
});

test("answers that break off count for the only service behind the proxy", async (t) => {
  const situation = { guardMs: longMs, now: { requests: 40, bad: 0 }, cutOff: 20 };
  await assert.rejects(
    guardOf(t, situation).guard(),
    isProblem("version_worse", /20 of 60 requests went wrong \(33.3 %\), before 2 of 101/),
  );
});

test("answers that break off do not count if clients left, or with several services", async (t) => {
  const situation = { guardMs: 700, now: { requests: 60, bad: 0 }, cutOff: 20 };
  const liveFilesRead = new Set(["app", "api"]);
  for (const other of [{ left: 19 }, { differences: { liveFilesRead } }]) {
    const { guard, events } = guardOf(t, { ...situation, ...other });
    await guard();
    assert.match(JSON.stringify(events[1]), /0 of 60 requests went wrong/);
  }
});

test("a version with too few requests passes, and it is said so", async (t) => {
  const { guard, events } = guardOf(t, { guardMs: 200, now: { requests: 3, bad: 3 } });
  await guard();
  assert.match(JSON.stringify(events[1]), /too few requests to judge by, 50 are needed: 3 of 3/);
});

test("a container that restarts ends the guard without any request", async (t) => {
  const { guard } = guardOf(t, { guardMs: longMs, now: { requests: 0, bad: 0 }, restarts: 1 });
  await assert.rejects(guard(), isProblem("container_not_healthy"));
});

test("a newer deployment ends the guard with the verdict so far", async (t) => {
  const { guard, events, ordersPath } = guardOf(t, { guardMs: longMs, now: { requests: 60, bad: 0 } });
  giveGuardOrder(ordersPath, 7, "end");
  await guard();
  assert.match(JSON.stringify(events[1]), /ended early: 0 of 60 requests went wrong/);
});

test("a roll back makes the guarded version fail", async (t) => {
  const { guard, ordersPath } = guardOf(t, { guardMs: longMs, now: { requests: 60, bad: 0 } });
  giveGuardOrder(ordersPath, 7, "back");
  await assert.rejects(guard(), isProblem("version_unwanted"));
});

test("nothing is guarded without a count, with the label 0, or in a roll back", async (t) => {
  const [first, ...others] = [
    { requestCount: null },
    { service: sampleService() },
    { version: { commit: "1", finishedAt: "", images: {} } },
  ];
  for (const differences of [first, ...others]) {
    const { guard, events } = guardOf(t, { guardMs: longMs, now: { requests: 60, bad: 60 }, differences });
    await guard();
    assert.deepEqual(events, []);
  }
});

interface Situation {
  readonly guardMs: number;
  readonly now: Answered;
  readonly restarts?: number;
  /** Requests since the switch that were cut off, and how many of them by their clients. */
  readonly cutOff?: number;
  readonly left?: number;
  readonly differences?: Partial<ServiceRollout> | undefined;
}

function guardOf(t: TestContext, situation: Situation) {
  const { guardMs, now, restarts = 0, cutOff = 0, left = 0, differences } = situation;
  const statePath = temporaryDirectory(t);
  const ordersPath = join(statePath, "orders");
  const env = { DEPLOY_ID: "7", HOTPUSH_ORDERS: ordersPath };
  const events: RolloutEvent[] = [];
  const service = sampleService({ guardMs });
  const project = { name: "shop", services: [service] };
  const directory = { path: "/run/live", adminSocket: "/run/live/admin.sock", project: null };
  const report = (event: RolloutEvent) => void events.push(event);
  const on: ServiceRollout = {
    ...sampleRequest(statePath, { report, env, engine: engineWith(restarts, left) }),
    ...{ own: null, commit: "1", version: null, current: null, lockDescriptor: 0, project, service },
    ...{ services: [service], configHashes: Promise.resolve(new Map()), liveDirectory: directory },
    ...{ liveFilesRead: new Set(["app"]), traffic: { by: "live file", directory } },
    requestCount: {
      to: (names) => (names.includes(fresh.name) ? now : { requests: 100, bad: 1 }),
      cutOff: (sinceMs = 0) => (sinceMs === 0 ? cutOff + 1 : cutOff),
    },
    ...differences,
  };
  const guard = () => guardNewVersion(on, [old], [fresh], new AbortController().signal);
  return { guard, events, ordersPath };
}

/** An engine whose containers run, and have restarted so often; Caddy's log names so many clients that left. */
function engineWith(restarts: number, left: number) {
  const inspected = {
    ...{ Id: fresh.id, Name: `/${fresh.name}`, Image: "x", RestartCount: restarts, Created: "2026-01-01" },
    ...{ Config: { Image: "x", Labels: {} }, State: { Status: "running", ExitCode: 0 } },
  };
  const caddy = { Id: "caddy", Mounts: [{ Source: "/run/live" }] };
  const warning = {
    msg: "aborting with incomplete response",
    request: { host: "a" },
    error: "writing: EPIPE",
  };
  const log = `${JSON.stringify(warning)}\n`.repeat(left);
  const answer = async () => Buffer.from(JSON.stringify(inspected));
  const get = async (path: string) => {
    if (path === "/containers/json") return Buffer.from(JSON.stringify([caddy]));
    return path.startsWith("/containers/caddy/logs") ? Buffer.from(log) : answer();
  };
  return { get, post: answer, delete: answer };
}
