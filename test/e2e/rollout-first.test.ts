import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeProject, type TestProject } from "../lab/project.ts";
import { underLoad } from "../lab/under-load.ts";

const script = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");
const run = promisify(execFile);

onEngine("the first deployment of a project that plain compose has started", (env) => {
  let project: HostedProject;
  let remote: GitRemote;
  let original: string;

  before(async () => {
    // The container sees the remote where it is on the host.
    const path = remotePath({ directory: "$REPO_PATH" });
    project = await makeHosted(env, {
      script,
      override: { volumes: [`${path}:${path}`] },
      prepare: async (prepared) => {
        remote = await makeGitRemote(prepared);
      },
    });
    original = (await run("git", ["-C", project.directory, "rev-parse", "HEAD"])).stdout.trim();
  });
  after(async () => {
    await project?.remove();
    await remote?.remove();
  });

  test("hotpush rollback brings back what served before the first push, with no request failed", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await remote.push((clone) =>
        writeFile(
          join(clone, "app", "behaviour.json"),
          JSON.stringify({ version: "second", behaviour: "graceful" }),
        ),
      );
      assert.equal(await project.ending(1), "succeeded", await log());
      const output = await hotpush("rollback");
      assert.match(output, new RegExp(`^Deployment 2 goes back to ${original}\\.$`, "m"));
      assert.match(output, /^Deployment 2 succeeded after .+\.$/m);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.match(await (await fetch(project.origin)).text(), /^first /);
    assert.match(await log(), new RegExp(`is recorded as a good version, ${original.slice(0, 12)}: `));
  });

  async function hotpush(...args: readonly string[]): Promise<string> {
    const [name = ""] = await project.instances();
    return project.docker("exec", name, "hotpush", ...args);
  }

  async function log(): Promise<string> {
    const [name = ""] = await project.instances();
    return project.docker("logs", name);
  }
});

onEngine("the first roll-out of a project that plain compose has started, outside of git", (env) => {
  let project: TestProject;

  before(async () => {
    project = await makeProject(env);
    await project.write("first", "sick");
    await project.docker("compose", "up", "--detach", "--build");
  });
  after(() => project?.remove());

  test("a version that was not healthy is not recorded as a good one", async () => {
    await project.write("second", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    const back = await project.rollOut({ args: ["--back"] });
    assert.match(back.output, /FAILED: There is no good version before the present one/);
  });
});
