import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments } from "../harness/records.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

test("100 identical deliveries to two instances at the same moment are one deployment", async (t) => {
  const first = await startService(t);
  const second = await first.again();
  await second.log.waitFor(({ event }) => event === "runner.waiting");
  const push = githubPush();
  const urls = Array.from({ length: 100 }, (_, index) => (index % 2 === 0 ? first.url : second.url));
  const replies = await Promise.all(urls.map((url) => deliver(url, push)));
  // The one that does not run has its pushes on disk, and answers so.
  const named = replies.filter(({ status, json }) => status === 202 && json.delivery === undefined);
  assert.ok(named.length <= 1, `${named.length} were told that theirs is new`);
  for (const { status } of replies) assert.ok(status === 200 || status === 202, String(status));
  await first.log.waitForEnding(1);
  await until("the spool is empty", () => readdirSync(join(first.statePath, "spool")).length === 0);
  assert.deepEqual(
    readDeployments(first.statePath).map(({ attempts }) => attempts),
    [1],
  );
  assert.ok(!second.log.lines.some(({ event }) => event === "deployment.started"));
  assert.equal(await second.end("SIGTERM"), 0);
});

test("nobody else can enter a state directory that the service makes", async (t) => {
  const { url, log, statePath } = await startService(t);
  await deliver(url, githubPush());
  await log.waitForEnding(1);
  // Files keep their modes in a directory that was there before, such as a volume.
  const modes = ["", "runner.lock", "logs/1.log"].map((name) => statSync(join(statePath, name)).mode & 0o777);
  assert.deepEqual(modes, [0o700, 0o600, 0o600]);
});
