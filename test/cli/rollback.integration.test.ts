import assert from "node:assert/strict";
import { test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { rolloutState, type Version, writeVersions } from "../../src/rollout/state.ts";
import { deliver, githubPush, randomCommit } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { startService } from "../harness/service.ts";
import { until } from "../harness/until.ts";

test("a roll back to a version, a deployment or a commit does not run deploy.sh", async (t) => {
  const commits = [randomCommit(), randomCommit()];
  const [first = ""] = commits;
  const service = await startService(t);
  await writeVersions(rolloutState(service.statePath, service.repoPath).versionsPath, commits.map(version));
  for (const [index, after] of commits.entries()) {
    await deliver(service.url, githubPush({ after }));
    await service.log.waitForEnding(index + 1);
  }
  const { stdout, code } = await hotpush(service, "rollback");
  assert.match(stdout, new RegExp(`^Deployment 3 goes back to ${first}\\.`));
  // Without a compose file here, the roll-out fails: this proves that it ran in place of deploy.sh.
  assert.match(stdout, /The compose file in .* cannot be read/);
  assert.deepEqual([code, /^deployed/m.test(service.log.outputOf(3).join("\n"))], [1, false]);
  for (const wanted of ["1", first.slice(0, 9)]) {
    const { stdout } = await hotpush(service, "rollback", "--detach", wanted);
    assert.ok(stdout.includes(`to ${first}.`), stdout);
  }
  const unknown = await hotpush(service, "rollback", "99");
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /There is no deployment 99; /);
});

function version(commit: string): Version {
  const image = { image: "app", id: `sha256:${commit}`, tag: `app:${commit.slice(0, 12)}` };
  return { commit, finishedAt: new Date().toISOString(), images: { app: image } };
}

/** Guards a new version until the service gives an order; the version fails if that is to go back. */
const guarding = `#!/bin/sh
report="$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
order="$HOTPUSH_ORDERS/$DEPLOY_ID"
mkdir -p "$STATE_PATH/rollout"
echo '{"liveAtMs":1790000000000,"requests":null,"isGuarding":true}' >"$report"
while [ -d "$STATE_PATH" ] && [ ! -e "$order" ]; do sleep 0.02; done
[ "$(cat "$order")" = end ]
`;

test("hotpush rollback ends a guarded deployment, which goes back itself", async (t) => {
  const service = await startService(t, { script: guarding });
  await writeVersions(rolloutState(service.statePath, service.repoPath).versionsPath, [
    version(randomCommit()),
  ]);
  await deliver(service.url, githubPush());
  const liveAt = async () => (await hotpushJson<StatusJson>(service, "status")).running?.deployment.liveAt;
  await until("it is live", async () => (await liveAt()) === "2026-09-21T14:13:20.000Z");
  const { code, stdout } = await hotpush(service, "rollback");
  assert.equal(code, 0, stdout);
  assert.match(
    stdout,
    /^Deployment 1 was still guarded\. It fails now: the version before it gets the requests again\.\n/,
  );
  const { last, waiting } = await hotpushJson<StatusJson>(service, "status");
  assert.deepEqual([last[0]?.id, last[0]?.state, waiting], [1, "failed", []], "no deployment was added");
});

/** Its version goes live; the test says when it is a good one. */
const settling = `#!/bin/sh
mkdir -p "$STATE_PATH/rollout"
echo "{\\"liveAtMs\\":$(date +%s000)}" >"$STATE_PATH/rollout/deployment-$DEPLOY_ID.json"
while [ -d "$STATE_PATH" ]; do sleep 0.02; done
`;

test("hotpush rollback takes back what is live, also before that is a good version", async (t) => {
  const service = await startService(t, { script: settling });
  const { versionsPath } = rolloutState(service.statePath, service.repoPath);
  const versions = ["2026-01-01", "2026-01-02"].map((day) => ({
    ...version(randomCommit()),
    finishedAt: day,
  }));
  await writeVersions(versionsPath, versions);
  await deliver(service.url, githubPush());
  const liveAt = async () => (await hotpushJson<StatusJson>(service, "status")).running?.deployment.liveAt;
  await until("it is live", liveAt);
  const back = () => hotpush(service, "rollback", "--detach");
  const before = new RegExp(`to ${versions[1]?.commit}\\.`);
  assert.match((await back()).stdout, before);
  await writeVersions(versionsPath, [...versions, version(randomCommit())]);
  assert.match((await back()).stdout, before, "it is recorded by now");
});
