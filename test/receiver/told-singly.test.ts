import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { createToldSingly } from "../../src/receiver/told-singly.ts";
import { deliver, githubDelivery, githubPush } from "../harness/delivery.ts";
import { startService } from "../harness/service.ts";

test("what is too much in a stretch of time is counted, each kind for itself, and told at its end", async (t) => {
  keepAlive(t);
  const more = Promise.withResolvers<[string, number]>();
  const isToldSingly = createToldSingly<string>({
    most: 2,
    stretchMs: 50,
    tellMore: (...told) => more.resolve(told),
  });
  const one = Array.from({ length: 5 }, () => isToldSingly("one"));
  assert.deepEqual(one, [true, true, false, false, false]);
  assert.equal(isToldSingly("other"), true);
  assert.deepEqual(await more.promise, ["one", 3]);
  assert.equal(isToldSingly("one"), true, "a new stretch has begun");
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
    const singly = () => service.log.lines.filter((line) => line.event === event).length;
    const counted = () =>
      service.log.lines
        .filter((line) => line.event === "delivery.ignored_more" && line.reason === reason)
        .reduce((sum, { count }) => sum + Number(count), 0);
    await service.log.waitFor(() => singly() + counted() === rounds);
    const stretches = Math.ceil((performance.now() - startedMs) / 1_000);
    assert.ok(singly() <= 100 * stretches, `${singly()} ${event} in ${stretches} s`);
  }
});

/** The stretch's own timer keeps no process alive. */
function keepAlive(t: TestContext): void {
  const server = createServer().listen(0);
  t.after(() => once(server.close(), "close"));
}
