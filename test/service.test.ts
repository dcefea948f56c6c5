import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush, randomCommit } from "./harness/delivery.ts";
import { startService } from "./harness/service.ts";

test("a signed push to main is accepted, and its script gets the ref and the commit", async (t) => {
  const service = await startService(t);
  const commit = randomCommit();
  const reply = await deliver(service.url, githubPush({ after: commit }));
  assert.equal(reply.status, 202);
  assert.deepEqual(reply.json, {
    status: "accepted",
    deployment: { id: 1, ref: "refs/heads/main", commit, state: "running" },
  });
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(1), ["==> Deploy", `deployed refs/heads/main ${commit}`]);
});

test("a push to master is deployed as master", async (t) => {
  const service = await startService(t);
  const commit = randomCommit();
  await deliver(service.url, githubPush({ ref: "refs/heads/master", after: commit }));
  await service.log.waitForEnding(1);
  assert.equal(service.log.outputOf(1)[1], `deployed refs/heads/master ${commit}`);
});

test("SIGTERM ends an idle service with exit code 0", async (t) => {
  const service = await startService(t);
  assert.equal(await service.end("SIGTERM"), 0);
});

test("the log says which newer push superseded one that waited", async (t) => {
  const service = await startService(t, {
    script: "#!/bin/sh\nread _ < hold\n",
    env: { SHUTDOWN_GRACE: "0" },
  });
  execFileSync("mkfifo", [join(service.repoPath, "hold")]);
  for (let count = 0; count < 3; count += 1) await deliver(service.url, githubPush());
  const line = await service.log.waitFor(({ event }) => event === "deployment.superseded");
  assert.deepEqual([line.deployment, line.by], [2, 3]);
  await service.end();
});
