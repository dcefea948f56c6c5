import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "./harness/delivery.ts";
import { startService } from "./harness/service.ts";

test("a service whose log has lost its reader ends on SIGTERM", async (t) => {
  const service = await startService(t);
  service.child.stdout?.destroy();
  assert.equal(await service.end("SIGTERM"), 0);
});

test("a service whose log reader stalls ends on SIGTERM", async (t) => {
  const service = await startService(t);
  service.child.stdout?.pause();
  const push = githubPush();
  // More lines than what lies between the service and its reader can hold.
  for (let count = 0; count < 2_000; count += 20) {
    await Promise.all(Array.from({ length: 20 }, () => deliver(service.url, push)));
  }
  assert.equal(await service.end("SIGTERM"), 0);
});
