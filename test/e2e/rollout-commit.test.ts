import assert from "node:assert/strict";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, startAnswering } from "../harness/hotpush.ts";
import { untilDeployment } from "../harness/records.ts";
import type { RunningService } from "../harness/service.ts";
import { type GitRemote, makeGitRemote } from "../lab/git-remote.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endingIn, makeProject, type TestProject } from "../lab/project.ts";

const example = join(import.meta.dirname, "../../examples/deploy.sh");

onEngine("a push whose branch has moved on before the script pulls", (labEnv) => {
  let project: TestProject;
  let remote: GitRemote;
  let service: RunningService;
  const cleanUps: (() => unknown)[] = [];
  const commits: string[] = [];

  before(async () => {
    project = await makeProject(labEnv);
    await project.write("first", "graceful");
    await copyFile(example, join(project.directory, "deploy.sh"));
    await writeFile(join(project.directory, ".env"), `PORT=${project.env.PORT}\n`);
    remote = await makeGitRemote(project);
    const scope = { after: (cleanUp: () => unknown) => void cleanUps.push(cleanUp) };
    const env = project.env as Record<string, string>;
    const statePath = join(project.directory, "state");
    service = await startAnswering(scope, { repoPath: project.directory, statePath, env });
    assert.equal(await deployed(1, await push("second")), "succeeded");
  });
  after(async () => {
    for (const cleanUp of cleanUps) await cleanUp();
    await remote?.remove();
    await project?.remove();
  });

  test("images, versions and the record have the commit that is checked out", async () => {
    const passed = await push("passed");
    const tip = await push("tip");
    assert.equal(await deployed(2, passed), "succeeded");
    assert.equal(await version(), "tip");
    const { checkedOutCommit } = await untilDeployment(service.statePath, 2, () => true);
    assert.equal(checkedOutCommit, tip);
    const tags = await project.docker("images", "--format", "{{.Tag}}", `${project.name}-app`);
    assert.ok(tags.includes(tip.slice(0, 12)), tags);
    assert.ok(!tags.includes(passed.slice(0, 12)), tags);
  });

  test("a roll back to the commit that was passed is refused; one to the tip brings the tip", async () => {
    const [, passed = "", tip = ""] = commits;
    assert.equal(await deployed(3, await push("bad")), "succeeded");
    const refused = await hotpush(service, "rollback", passed);
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(refused.stderr, /no good version of the commit /);
    assert.equal(await version(), "bad");
    const { code, stdout, stderr } = await hotpush(service, "rollback", tip);
    assert.equal(code, 0, stdout + stderr);
    assert.equal(await version(), "tip");
  });

  /** Pushes a version of the app without a delivery. @returns its commit */
  async function push(name: string): Promise<string> {
    const behaviour = JSON.stringify({ version: name, behaviour: "graceful" });
    const write = (clone: string) => writeFile(join(clone, "app", "behaviour.json"), behaviour);
    commits.push(await remote.pushUntold(write));
    return commits.at(-1) ?? "";
  }

  /** Delivers the push of `commit`, and waits until deployment `id` has ended. */
  async function deployed(id: number, commit: string): Promise<string> {
    await deliver(service.url, githubPush({ after: commit }));
    return await endingIn(service.statePath)(id, 300_000);
  }

  async function version(): Promise<string> {
    const response = await fetch(project.origin, { headers: { connection: "close" } });
    return (await response.text()).split(" ")[0] ?? "";
  }
});
