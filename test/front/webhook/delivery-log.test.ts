import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { createLogThrottle } from "../../../src/platform/log-throttle.ts";
import { deliver, githubDelivery, githubPush } from "../../harness/delivery.ts";
import { startService } from "../../harness/service.ts";

test("events beyond the limit are counted by kind, and reported at the end of the window", async (t) => {
  keepAlive(t);
  const more = Promise.withResolvers<[string, number]>();
  const mayLog = createLogThrottle<string>(2, 50, (...args) => more.resolve(args));
  const one = Array.from({ length: 5 }, () => mayLog("one"));
  assert.deepEqual(one, [true, true, false, false, false]);
  assert.equal(mayLog("other"), true);
  assert.deepEqual(await more.promise, ["one", 3]);
  assert.equal(mayLog("one"), true, "a new window has begun");
});

test("a flood of ignored pushes and pings costs a bounded number of log lines, and none goes uncounted", async (t) => {
  const service = await startService(t);
  const flood = [githubPush({ ref: "refs/heads/feature" }), githubDelivery("ping", "{}")];
  const rounds = 500;
  const startedMs = performance.now();
  for (let count = 0; count < rounds; count += 25) {
    await Promise.all(flood.flatMap((one) => Array.from({ length: 25 }, () => deliver(service.url, one))));
  }
  for (const [event, reason] of [
    ["delivery.ignored", "other_branch"],
    ["delivery.pong", "pong"],
  ]) {
    const logged = () => service.log.lines.filter((line) => line.event === event).length;
    const counted = () =>
      service.log.lines
        .filter((line) => line.event === "delivery.ignored_more" && line.reason === reason)
        .reduce((sum, { count }) => sum + Number(count), 0);
    await service.log.waitFor(() => logged() + counted() === rounds);
    const windows = Math.ceil((performance.now() - startedMs) / 1_000);
    assert.ok(logged() <= 100 * windows, `${logged()} ${event} in ${windows} s`);
  }
});

/** The window's own timer keeps no process alive. */
function keepAlive(t: TestContext): void {
  const server = createServer().listen(0);
  t.after(() => once(server.close(), "close"));
}
