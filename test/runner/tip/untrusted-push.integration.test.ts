import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { githubPush } from "../../harness/delivery.ts";
import { git, makeProject, type Project } from "../../harness/project.ts";
import { untilDeployment } from "../../harness/records.ts";
import { makeMachine } from "../../harness/roles.ts";

/** Writes what it was given, and deploys the newest commit of the branch, as scripts did before DEPLOY_EXACT. */
const script = `#!/bin/sh
echo "$DEPLOY_EXACT $DEPLOY_COMMIT $2" >received
git pull --quiet
`;

/** Both roles with one project. `deploy` pushes a commit through the inbox and waits for the end of its deployment. */
async function startRoles(t: TestContext, project: Project) {
  project.script(script);
  const machine = makeMachine(t);
  machine.addProject("shop", project.repoPath, { DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" });
  const receive = await machine.start("receive");
  await machine.start("run", { DEPLOY_RETRY_PAUSES: "0" });
  let id = 0;
  async function deploy(after: string) {
    id += 1;
    const response = await fetch(receive.urlOf("shop"), { method: "POST", ...githubPush({ after }) });
    assert.equal(response.status, 202);
    const hasEnded = ({ state }: { state: string }) => !["queued", "running"].includes(state);
    return await untilDeployment(machine.statePathOf("run"), id, hasEnded);
  }
  return { deploy };
}

test("a push through the inbox deploys the tip of the branch, whatever commit of it is named", async (t) => {
  const project = makeProject(t);
  const { deploy } = await startRoles(t, project);
  const [older, tip] = [project.commit(), project.commit()];
  const ended = await deploy(older);
  assert.deepEqual([ended.state, ended.commit, ended.checkedOutCommit], ["succeeded", older, tip]);
  assert.equal(readFileSync(join(project.repoPath, "received"), "utf8"), `1 ${tip} ${tip}\n`);
});

test("a push through the inbox of a commit beside the branch fails, and nothing runs", async (t) => {
  const project = makeProject(t);
  const { deploy } = await startRoles(t, project);
  const tree = git(project.repoPath, "rev-parse", "HEAD^{tree}");
  const aside = git(project.repoPath, "commit-tree", tree, "-p", "HEAD", "-m", "Forged");
  // Also one that is at the remote, on a branch whose name ends like the one deployed.
  git(project.repoPath, "push", "--quiet", "origin", `${aside}:refs/heads/a/refs/heads/main`);
  for (const commit of [aside, "0123456789".repeat(4)]) {
    const ended = await deploy(commit);
    assert.deepEqual([ended.state, ended.problem?.code], ["failed", "fetch_failed"]);
    assert.match(ended.problem?.detail ?? "", /is not in refs\/heads\/main, which is at/);
  }
  assert.equal(existsSync(join(project.repoPath, "received")), false);
});

test("a push through the inbox is looked at for [skip deploy], whatever its payload says", async (t) => {
  const project = makeProject(t);
  const { deploy } = await startRoles(t, project);
  assert.equal((await deploy(project.commit())).state, "succeeded");
  assert.equal((await deploy(project.push("Notes [skip deploy]"))).state, "skipped");
});
