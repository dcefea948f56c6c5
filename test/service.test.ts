import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush, randomCommit } from "./harness/delivery.ts";
import { startService } from "./harness/service.ts";

test("a signed push to main is accepted, and its script gets the ref and the commit", async (t) => {
  const service = await startService(t);
  const commit = randomCommit();
  const reply = await deliver(service.url, githubPush({ after: commit }));
  assert.equal(reply.status, 202);
  assert.equal(reply.json.status, "accepted");
  assert.equal((await service.log.waitForEnding(1)).event, "deployment.succeeded");
  assert.deepEqual(service.log.outputOf(1), ["==> Deploy", `deployed refs/heads/main ${commit}`]);
});
