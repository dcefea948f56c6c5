import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject } from "../harness/repository.ts";
import { letGo, startService, waitingScript } from "../harness/service.ts";

test("only the branch that BRANCH names is deployed, by a push and by hand", async (t) => {
  const project = makeProject(t);
  const main = git(project.repoPath, "rev-parse", "HEAD");
  // Somebody who may create branches, but not push to main, has pushed a master.
  const master = git(project.repoPath, "commit-tree", "HEAD^{tree}", "-p", main, "-m", "not main");
  git(project.repoPath, "push", "--quiet", "origin", `${master}:refs/heads/master`);
  const before = await startService(t, { repoPath: project.repoPath });
  for (const branch of ["main", "master"]) await hotpush(before, "deploy", branch);
  await before.end();

  const service = await before.again({ env: { BRANCH: "main", CATCH_UP_INTERVAL: "1s" } });
  const { status, json } = await deliver(
    service.url,
    githubPush({ ref: "refs/heads/master", after: master }),
  );
  assert.deepEqual([status, json.status, json.reason], [200, "ignored", "branch_not_selected"]);
  const refused = await hotpush(service, "deploy", "master");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /Only main can be deployed/);
  // Nor by catch-up, though master was deployed last.
  const missed = project.commit();
  await untilDeployment(service.statePath, 3, ({ state }) => state === "succeeded");
  const deployed = readDeployments(service.statePath).map(({ ref, commit }) => [ref, commit]);
  assert.deepEqual(deployed.slice(2), [["refs/heads/main", missed]]);
});

test("a deployment of master that waits when BRANCH is set fails and runs nothing", async (t) => {
  const project = makeProject(t);
  project.script(waitingScript);
  const first = await startService(t, { repoPath: project.repoPath });
  await deliver(first.url, githubPush());
  await deliver(first.url, githubPush({ ref: "refs/heads/master" }));
  await first.end("SIGKILL");
  const second = await first.again({ env: { BRANCH: "main" } });
  letGo(project.repoPath);
  const refused = await untilDeployment(second.statePath, 2, ({ state }) => state === "failed");
  assert.equal(refused.problem?.code, "branch_not_selected");
});
