import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hotpush, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";

/** `git ls-remote origin refs/heads/main` lists it too, and before main itself. */
const lookAlike = "refs/heads/a/refs/heads/main";

test("main is deployed, by hand and by catch-up, not a branch whose name ends like it", async (t) => {
  const { project, head } = projectWithLookAlike(t);
  const env = { CATCH_UP_INTERVAL: "1s" };
  const service = await startAnswering(t, { repoPath: project.repoPath, env });
  assert.equal((await hotpush(service, "deploy")).code, 0);
  assert.equal(readDeployments(service.statePath)[0]?.commit, head);
  const missed = project.commit();
  const caughtUp = await untilDeployment(service.statePath, 2, ({ state }) => state === "succeeded");
  assert.equal(caughtUp.commit, missed);
  git(project.remotePath, "update-ref", "-d", "refs/heads/main");
  assert.notEqual((await hotpush(service, "deploy", "main")).code, 0);
  assert.equal(readDeployments(service.statePath).length, 2);
});

/** Anyone who may create a branch can push this one. */
function projectWithLookAlike(t: TestContext): { readonly project: Project; readonly head: string } {
  const project = makeProject(t);
  const head = git(project.repoPath, "rev-parse", "HEAD");
  const tree = git(project.repoPath, "rev-parse", "HEAD^{tree}");
  const stranger = git(project.repoPath, "commit-tree", tree, "-p", head, "-m", "not main");
  git(project.repoPath, "push", "--quiet", "origin", `${stranger}:${lookAlike}`);
  return { project, head };
}
