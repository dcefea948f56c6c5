import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { hotpush, startAnswering } from "../harness/hotpush.ts";
import { readDeployments, untilDeployment } from "../harness/records.ts";
import { git, makeProject, type Project } from "../harness/repository.ts";

/** `git ls-remote origin refs/heads/main` lists it too, and before main itself. */
const lookAlike = "refs/heads/a/refs/heads/main";

test("hotpush deploy takes main, not a branch whose name ends like it", async (t) => {
  const { project, head } = projectWithLookAlike(t);
  const service = await startAnswering(t, { repoPath: project.repoPath });
  const { code, stdout } = await hotpush(service, "deploy");
  assert.equal(code, 0, stdout);
  assert.equal(readDeployments(service.statePath)[0]?.commit, head);
});

test("catch-up deploys main, not a branch whose name ends like it", async (t) => {
  const { project } = projectWithLookAlike(t);
  const service = await startAnswering(t, {
    repoPath: project.repoPath,
    env: { CATCH_UP_INTERVAL: "1s" },
  });
  await hotpush(service, "deploy");
  const missed = project.commit();
  const caughtUp = await untilDeployment(service.statePath, 2, ({ state }) => state === "succeeded");
  assert.equal(caughtUp.commit, missed);
});

test("with a look-alike only, the remote has no main, and nothing is deployed", async (t) => {
  const { project } = projectWithLookAlike(t);
  const service = await startAnswering(t, { repoPath: project.repoPath });
  git(project.remotePath, "update-ref", "-d", "refs/heads/main");
  const { code, stderr } = await hotpush(service, "deploy", "main");
  assert.notEqual(code, 0);
  assert.match(stderr, /Nothing to deploy: the remote has no refs\/heads\/main\./);
  assert.deepEqual(readDeployments(service.statePath), []);
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
