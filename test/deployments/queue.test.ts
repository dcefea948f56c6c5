import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { readDeployments } from "../harness/records.ts";
import { type RunningService, startService } from "../harness/service.ts";

/** Notes what it deploys, and ends when there is a file `go`. */
const waitingScript = `#!/bin/sh
echo "$DEPLOY_ID $1 $2" >>runs
while [ -e deploy.sh ] && [ ! -e go ]; do sleep 0.02; done
`;

test("of 50 pushes during a deployment the newest is deployed after it, and no other", async (t) => {
  const service = await startService(t, { script: waitingScript });
  await deliver(service.url, githubPush());
  const commits = Array.from({ length: 50 }, randomCommit);
  for (const after of commits) {
    const reply = await deliver(service.url, githubPush({ after }));
    assert.deepEqual([reply.status, reply.json.deployment?.state], [202, "queued"]);
  }
  letGo(service);
  await service.log.waitForEnding(51);
  assert.deepEqual(
    runsOf(service).map(({ commit }) => commit),
    [runsOf(service)[0]?.commit, commits.at(-1)],
  );
  const superseded = readDeployments(service.statePath).slice(1, 50);
  assert.deepEqual(
    superseded.map(({ state, supersededBy }) => `${state} by ${supersededBy}`),
    Array.from({ length: 49 }, (_, index) => `superseded by ${index + 3}`),
  );
});

test("100 identical deliveries at the same moment are one deployment and one run", async (t) => {
  const service = await startService(t);
  const push = githubPush();
  const replies = await Promise.all(Array.from({ length: 100 }, () => deliver(service.url, push)));
  assert.deepEqual(new Set(replies.map(({ json }) => json.deployment?.id)), new Set([1]));
  // A busy machine answers before it knows which of them is new.
  const told = replies.filter(({ json }) => json.delivery === undefined).map(({ json }) => json.status);
  assert.ok(told.filter((status) => status !== "duplicate").length <= 1, told.join());
  await service.log.waitForEnding(1);
  assert.equal(readDeployments(service.statePath).length, 1);
  assert.equal(readDeployments(service.statePath)[0]?.attempts, 1);
});

function letGo({ repoPath }: RunningService): void {
  writeFileSync(join(repoPath, "go"), "");
}

function runsOf({ repoPath }: RunningService) {
  const lines = readFileSync(join(repoPath, "runs"), "utf8").trim().split("\n");
  return lines.map((line) => {
    const [id, ref, commit] = line.split(" ");
    return { id, ref, commit };
  });
}
