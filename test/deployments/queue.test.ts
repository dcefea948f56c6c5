import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

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
  const told = replies.map(({ status, json }) => `${status} ${json.status} ${json.deployment?.id}`).sort();
  assert.deepEqual(told, [...Array.from({ length: 99 }, () => "200 duplicate 1"), "202 accepted 1"]);
  await service.log.waitForEnding(1);
  assert.equal(readDeployments(service.statePath).length, 1);
  assert.equal(readDeployments(service.statePath)[0]?.attempts, 1);
});

test("a failed push that is redelivered runs again and can succeed", async (t) => {
  const script = '#!/bin/sh\necho "$DEPLOY_ID $1 $2" >>runs\ntest -e go\n';
  const service = await startService(t, { script });
  const push = githubPush();
  await deliver(service.url, push);
  await service.log.waitForEnding(1);
  letGo(service);
  const again = await deliver(service.url, push);
  assert.deepEqual(
    [again.status, again.json.deployment?.id, again.json.deployment?.state],
    [202, 1, "running"],
  );
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  assert.equal(runsOf(service).length, 2);
});

test("no two of 40 deployments run at the same time, however they are pushed", async (t) => {
  const script = "#!/bin/sh\nmkdir alone || exit 9\nsleep 0.01\nrmdir alone\n";
  const service = await startService(t, { script });
  for (let round = 0; round < 20; round += 1) {
    const refs = ["refs/heads/main", "refs/heads/master"];
    await Promise.all(refs.map((ref) => deliver(service.url, githubPush({ ref }))));
  }
  const states = await until("all have their ending", () => {
    const all = readDeployments(service.statePath).map(({ state }) => state);
    return all.length === 40 && all.every(isFinished) && new Set(all);
  });
  assert.deepEqual([...states].sort(), ["succeeded", "superseded"]);
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
