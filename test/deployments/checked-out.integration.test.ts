import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject } from "../harness/repository.ts";
import { letGo } from "../harness/service.ts";
import { until } from "../harness/until.ts";

const pull = "git fetch --quiet origin\ngit checkout --quiet -B main origin/main\n";
const waitToGo = 'while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done\n';

test("catch-up leaves a tip alone that an earlier push has checked out", async (t) => {
  const { service, pushed, tip } = await deployPassed(t, { CATCH_UP_INTERVAL: "1s" });
  const { commit, checkedOutCommit, subject } = await untilDeployment(service.statePath, 1, isDone);
  assert.deepEqual([commit, checkedOutCommit, subject], [pushed, tip, "a change"]);
  const { catchUp } = await hotpushJson<StatusJson>(service, "status");
  const hasLooked = async (since: string | null) =>
    (await hotpushJson<StatusJson>(service, "status")).catchUp.lookedAt !== since;
  await until("the remote is asked again", () => hasLooked(catchUp.lookedAt));
  assert.equal(readDeployments(service.statePath).length, 1);
});

test("what is deployed is shown as soon as the script begins", async (t) => {
  const script = `#!/bin/sh\necho "==> Pull"\n${pull}echo "==> Build"\n${waitToGo}exit 1\n`;
  const { service, tip } = await deployPassed(t, {}, script);
  const early = await untilDeployment(service.statePath, 1, ({ subject }) => subject !== null);
  assert.deepEqual([early.state, early.checkedOutCommit, early.author], ["running", tip, "Test"]);
  letGo(service.repoPath);
  const { state, checkedOutCommit } = await untilDeployment(service.statePath, 1, isDone);
  assert.deepEqual([state, checkedOutCommit], ["failed", tip]);
});

test("catch-up finds a return to a HEAD that the script never moved", async (t) => {
  const { remotePath, repoPath, commit } = makeProject(t);
  const unmoved = git(repoPath, "rev-parse", "HEAD");
  const pushed = commit();
  const service = await startAnswering(t, { repoPath, env: { CATCH_UP_INTERVAL: "1s" } });
  await deliver(service.url, githubPush({ after: pushed }));
  const { state, checkedOutCommit } = await untilDeployment(service.statePath, 1, isDone);
  assert.deepEqual([state, checkedOutCommit], ["succeeded", pushed]);
  git(remotePath, "update-ref", "refs/heads/main", unmoved);
  const { trigger, commit: caughtUp } = await untilDeployment(service.statePath, 2, isDone);
  assert.deepEqual([trigger, caughtUp], ["catch-up", unmoved]);
});

/** Delivers a push whose commit is not the branch's tip any more when the script pulls. */
async function deployPassed(t: TestContext, env = {}, script = `#!/bin/sh\n${pull}`) {
  const project = makeProject(t);
  project.script(script);
  const pushed = project.commit();
  const tip = project.commit();
  const service = await startAnswering(t, { repoPath: project.repoPath, env });
  await deliver(service.url, githubPush({ after: pushed }));
  return { service, pushed, tip };
}

function isDone({ state }: { readonly state: string }): boolean {
  return state === "succeeded" || state === "failed";
}
