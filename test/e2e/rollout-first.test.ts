import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { underLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Behaviour, makeProject, messagesIn, type TestProject } from "../lab/project.ts";

const script = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

onEngine("the first deployment of a project that plain compose has started", (env) => {
  let project: HostedProject;
  let remote: GitRemote;

  before(async () => {
    // The container sees the remote at its path on the host.
    const path = remotePath({ directory: "$REPO_PATH" });
    project = await makeHosted(env, {
      script,
      override: { volumes: [`${path}:${path}`] },
      prepare: async (prepared) => {
        remote = await makeGitRemote(prepared);
      },
    });
  });
  after(async () => {
    await project?.remove();
    await remote?.remove();
  });

  test("hotpush rollback restores the version from before the first push, with no request failed", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await remote.push((clone) =>
        writeFile(
          join(clone, "app", "behaviour.json"),
          JSON.stringify({ version: "second", behaviour: "graceful" }),
        ),
      );
      assert.equal(await project.ending(1), "succeeded", await log());
      const output = await hotpush("rollback");
      assert.match(output, /^Deployment 2 goes back to \d{12}\.$/m);
      assert.match(output, /^Deployment 2 succeeded after .+\.$/m);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.match(await (await fetch(project.origin)).text(), /^first /);
    assert.match(await log(), /is recorded as a good version, \d{12}: /);
  });

  async function hotpush(...args: readonly string[]): Promise<string> {
    const [name = ""] = await project.instances();
    return project.docker("exec", name, "hotpush", ...args);
  }

  async function log(): Promise<string> {
    const [name = ""] = await project.instances();
    return messagesIn(await project.docker("logs", name));
  }
});

onEngine("the first roll-out of a project that plain compose has started, outside of git", (env) => {
  let project: TestProject;

  before(async () => {
    project = await makeProject(env);
    const seed = { image: "debian:trixie-slim", command: ["true"] };
    await writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ services: { seed } }));
  });
  after(() => project?.remove());

  test("the serving version is recorded by its creation time, even if a seed has ended", async () => {
    await startByCompose("first", "graceful");
    await project.write("second", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    assert.match(output, /note +what serves now is recorded as a good version, \d{12}: /);
    assert.equal((await project.hotpush("prune")).code, 0);
    const back = await project.rollOut({ args: ["--back"] });
    assert.equal(back.code, 0, back.output);
    assert.match(await (await fetch(project.origin)).text(), /^first /);
  });

  test("a version that is not healthy is not recorded as a good one", async () => {
    await rm(join(project.directory, "state"), { recursive: true });
    await startByCompose("third", "sick");
    await project.write("fourth", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    const back = await project.rollOut({ args: ["--back"] });
    assert.match(back.output, /FAILED: There is no good version before the present one/);
  });

  async function startByCompose(version: string, behaviour: Behaviour): Promise<void> {
    await project.write(version, behaviour);
    await project.docker("compose", "up", "--detach", "--build");
    const ids = await project.docker("compose", "ps", "--all", "--quiet", "app");
    if (behaviour === "sick") return;
    const health = () => project.docker("inspect", "--format", "{{.State.Health.Status}}", ids);
    await until("the health of the app", async () => (await health()) === "healthy");
  }
});
