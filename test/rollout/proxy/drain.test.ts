import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { LiveDirectory } from "../../../src/rollout/context.ts";
import { drain, drainLimits } from "../../../src/rollout/proxy/drain.ts";
import { fakeCaddy, liveDirectory } from "./fake-caddy.ts";

const limits = { settleMs: 5, pollMs: 5, timeoutMs: 200, blindMs: 20 };

/** The live files of a project with a Caddy of its own, which answers as `answer` says. */
async function caddy(t: TestContext, answer: (path: string) => unknown): Promise<LiveDirectory> {
  const live = liveDirectory(t);
  await fakeCaddy(t, live, answer);
  return live;
}

test("drain ends when the old container has no request left", async (t) => {
  const counts = [3, 1, 0];
  const live = await caddy(t, () => [
    { address: "shop-app-1:8080", num_requests: counts.shift() ?? 0 },
    { address: "shop-app-2:8080", num_requests: 70 },
  ]);
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), { kind: "drained" });
  assert.equal(counts.length, 0);
});

test("a count of zero is believed when the next one is zero too", async (t) => {
  const counts = [0, 2, 0, 0, 1];
  const live = await caddy(t, () => [{ address: "shop-app-1:8080", num_requests: counts.shift() }]);
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), { kind: "drained" });
  assert.deepEqual(counts, [1]);
});

test("an upstream that Caddy no longer lists is drained", async (t) => {
  const live = await caddy(t, () => null);
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), { kind: "drained" });
});

test("drain stops waiting at its limit and says how many requests were left", async (t) => {
  const live = await caddy(t, () => [{ address: "shop-app-1:8080", num_requests: 2 }]);
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), { kind: "timed_out", inFlight: 2 });
});

for (const inFlight of [2, 0]) {
  test(`drain stops waiting when aborted, and does not report the ${inFlight} in flight`, async (t) => {
    const given = new AbortController();
    const live = await caddy(t, () => {
      given.abort();
      return [{ address: "shop-app-1:8080", num_requests: inFlight }];
    });
    const forever = { ...limits, timeoutMs: 600_000 };
    assert.deepEqual(await drain(live, "app", ["shop-app-1"], forever, given.signal), { kind: "given_up" });
  });
}

test("without an answer from Caddy, drain waits as long as the longest request", async (t) => {
  const live = liveDirectory(t);
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), {
    kind: "blind",
    why: "no answer",
    waitedMs: 20,
  });
});

const byFile = { address: "{file./run/live/app}:8080", num_requests: 3 };

test("a Caddy that counts requests only by live file counts as silent", async (t) => {
  const old = await caddy(t, () => [byFile]);
  const blind = { kind: "blind", why: "no names", waitedMs: 20 };
  assert.deepEqual(await drain(old, "app", ["shop-app-1"], limits), blind);
  const answers = [[byFile], [{ ...byFile, num_requests: 0 }]];
  const idle = await caddy(t, () => answers.shift() ?? []);
  assert.deepEqual(await drain(idle, "app", ["shop-app-1"], limits), { kind: "drained" });
  const counted = [byFile, { address: "shop-app-2:8080", num_requests: 3 }];
  const newer = await caddy(t, () => counted);
  writeFileSync(join(newer.path, "app"), "shop-app-2");
  assert.deepEqual(await drain(newer, "app", ["shop-app-1"], limits), { kind: "drained" });
});

test("requests to upstreams that the Caddyfile names itself are not counted", async (t) => {
  const live = await caddy(t, () => [byFile, { address: "grafana:3000", num_requests: 3 }]);
  writeFileSync(join(live.path, "app"), "shop-app-2");
  const blind = { kind: "blind", why: "no names", waitedMs: 20 };
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], limits), blind);
});

test("a stream that Caddy counts under no container is waited for up to the limit", async (t) => {
  const counts = Array.from({ length: 20 }, (_, index) => (index < 19 ? 1 : 0));
  const live = await caddy(t, () => [{ ...byFile, num_requests: counts.shift() ?? 0 }]);
  const patient = { ...limits, blindMs: 60_000 };
  assert.deepEqual(await drain(live, "app", ["shop-app-1"], patient), { kind: "drained" });
  assert.equal(counts.length, 0);
});

test("the label hotpush.drain-timeout also counts if Caddy does not report", () => {
  assert.deepEqual(drainLimits(300_000), {
    settleMs: 200,
    pollMs: 50,
    timeoutMs: 300_000,
    blindMs: 300_000,
  });
  assert.deepEqual(drainLimits(null), { settleMs: 200, pollMs: 50, timeoutMs: 30_000, blindMs: 10_000 });
});
