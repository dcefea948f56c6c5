import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject } from "../harness/repository.ts";
import type { RunningService } from "../harness/service.ts";
import { letGo, waitingScript } from "../harness/service.ts";

const onlyMain = { BRANCH: "main", CATCH_UP_INTERVAL: "1s" };

test("only the branch that BRANCH names is deployed, by a push and by hand", async (t) => {
  const { service, main, master } = await startWithNewMaster(t, onlyMain);
  const reply = await deliver(service.url, githubPush({ ref: "refs/heads/master", after: master }));
  assert.deepEqual(
    [reply.status, reply.json.status, reply.json.reason],
    [200, "ignored", "branch_not_selected"],
  );
  const refused = await hotpush(service, "deploy", "master");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /BRANCH/);
  assert.equal((await hotpush(service, "deploy")).code, 0);
  assert.deepEqual(
    readDeployments(service.statePath).map(({ ref, commit }) => [ref, commit]),
    [["refs/heads/main", main]],
  );
  const { branches } = await hotpushJson<{ readonly branches: readonly string[] }>(service, "status");
  assert.deepEqual(branches, ["main"]);
});

test("catch-up and recovery leave a master from before BRANCH was set alone", async (t) => {
  const { service: before, project } = await startWithNewMaster(t, {});
  await hotpush(before, "deploy", "main");
  await hotpush(before, "deploy", "master");
  await before.end();
  const service = await before.again({ env: onlyMain });
  const missed = project.commit();
  const caughtUp = await untilDeployment(service.statePath, 3, ({ state }) => state === "succeeded");
  assert.deepEqual([caughtUp.ref, caughtUp.commit], ["refs/heads/main", missed]);
});

test("a deployment of master that waits when BRANCH is set fails and runs nothing", async (t) => {
  const project = makeProject(t);
  project.script(waitingScript);
  const first = await startAnswering(t, { repoPath: project.repoPath });
  await deliver(first.url, githubPush());
  await deliver(first.url, githubPush({ ref: "refs/heads/master" }));
  await first.end("SIGKILL");
  const second = await first.again({ env: { BRANCH: "main" } });
  letGo(project.repoPath);
  const refused = await untilDeployment(second.statePath, 2, ({ state }) => state === "failed");
  assert.equal(refused.problem?.code, "branch_not_selected");
});

/** Somebody who may create branches, but not push to main, has pushed a master. */
async function startWithNewMaster(t: TestContext, env: Record<string, string>) {
  const project = makeProject(t);
  const main = git(project.repoPath, "rev-parse", "HEAD");
  const tree = git(project.repoPath, "rev-parse", "HEAD^{tree}");
  const master = git(project.repoPath, "commit-tree", tree, "-p", main, "-m", "not main");
  git(project.repoPath, "push", "--quiet", "origin", `${master}:refs/heads/master`);
  const service: RunningService = await startAnswering(t, { repoPath: project.repoPath, env });
  return { project, service, main, master };
}
