import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { rolloutState } from "../../src/rollout/lock.ts";
import { writeVersions } from "../../src/rollout/versions.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { commitOf } from "../harness/store.ts";
import { until } from "../harness/until.ts";

/** Guards a new version until the service gives an order; the version fails if that is to go back. */
const script = `#!/bin/sh
report="$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
order="$HOTPUSH_ORDERS/$DEPLOY_ID"
mkdir -p "$STATE_PATH/rollout"
echo '{"liveAtMs":1790000000000,"requests":null,"isGuarding":true}' >"$report"
while [ -d "$STATE_PATH" ] && [ ! -e "$order" ]; do sleep 0.02; done
[ "$(cat "$order")" = end ]
`;

test("hotpush rollback ends a guarded deployment, which goes back itself", async (t) => {
  const { service, commit } = await startGuarded(t);
  const { code, stdout } = await hotpush(service, "rollback");
  assert.equal(code, 0, stdout);
  assert.match(
    stdout,
    /^Deployment 1 was still guarded\. It fails now: the version before it gets the requests again\.\n/,
  );
  const { last, waiting } = await hotpushJson<StatusJson>(service, "status");
  assert.deepEqual([last[0]?.id, last[0]?.state, waiting], [1, "failed", []], "no deployment was added");
  assert.ok(commit);
});

test("so does a roll back to the version that serves without the guarded one", async (t) => {
  const { service, commit } = await startGuarded(t);
  assert.equal((await hotpush(service, "rollback", commit.slice(0, 7))).code, 0);
  assert.equal((await hotpushJson<StatusJson>(service, "status")).last[0]?.state, "failed");
});

test("a push during the guard is deployed after it, and the guarded version stays", async (t) => {
  const { service } = await startGuarded(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { last, running } = await hotpushJson<StatusJson>(service, "status");
  assert.equal(last[0]?.state, "succeeded");
  assert.equal(running?.deployment.id ?? 2, 2);
});

async function startGuarded(t: Parameters<typeof startAnswering>[0]) {
  const service = await startAnswering(t, { script });
  const commit = commitOf("a");
  const version = { commit, finishedAt: "2026-11-20T10:00:00Z", images: {} };
  await writeVersions(rolloutState(service.statePath, service.repoPath).versionsPath, [version]);
  await deliver(service.url, githubPush());
  const liveAt = async () => (await hotpushJson<StatusJson>(service, "status")).running?.deployment.liveAt;
  await until("it is live", async () => (await liveAt()) === "2026-09-21T14:13:20.000Z");
  return { service, commit };
}
