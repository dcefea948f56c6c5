import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readDeployments } from "../harness/records.ts";
import { git } from "../harness/repository.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { underLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Behaviour, messagesIn } from "../lab/project.ts";

const script = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

onEngine("from git push to live, on a real engine, in the real image", (env) => {
  let project: HostedProject;
  let remote: GitRemote;

  before(async () => {
    // The container sees the remote at its path on the host.
    const mount = `${remotePath({ directory: "$REPO_PATH" })}:${remotePath({ directory: "$REPO_PATH" })}`;
    project = await makeHosted(env, {
      script,
      // The repository has another path than on the host: roll-outs, roll back and prune must handle that.
      override: { volumes: [mount, "$REPO_PATH:/app"], environment: { REPO_PATH: "/app" } },
      prepare: async (prepared) => {
        remote = await makeGitRemote(prepared);
      },
    });
  });
  after(async () => {
    await project?.remove();
    await remote?.remove();
  });

  test("the first push is live, and hotpush rollback restores what was there before; no request failed", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await push("second", "graceful");
      assert.equal(await project.ending(1), "succeeded", await log());
      assert.match(await hotpush("rollback"), /^Deployment 2 goes back to \d{12}\.$/m);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.equal(await project.ending(2), "succeeded", await log());
    assert.match(await (await fetch(project.origin)).text(), /^first /);
    assert.match(messagesIn(await log()), /is recorded as a good version, \d{12}: /);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("in the container, too, a version is named after the checked-out commit", async () => {
    const head = git(project.directory, "rev-parse", "HEAD").slice(0, 12);
    const output = await hotpush("rollout");
    assert.ok(output.includes(`Rolling out ${project.name} at ${head}: `), output);
  });

  test("a broken version never serves, and its failure is reported with the reason", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await push("broken-one", "crashes");
      assert.equal(await project.ending(3), "failed", await log());
    });
    assert.deepEqual(versions, ["second"]);
    const text = await log();
    assert.match(text, /"event":"deployment\.failed","deployment":3/);
    assert.match(text, /version broken-one cannot start: no database named/);
  });

  test("after a good push, roll back restores the version before it, and is recorded", async () => {
    await push("third", "graceful");
    assert.equal(await project.ending(4), "succeeded", await log());
    const { versions } = await underLoad(project.origin, async () => {
      const output = await hotpush("rollback");
      assert.match(output, /^Deployment 5 goes back to [0-9a-f]{40}\.$/m);
      assert.match(output, /^Deployment 5 succeeded after .+\.$/m);
    });
    assert.deepEqual(versions, ["third", "second"]);
    assert.deepEqual(
      readDeployments(project.statePath).map(({ state }) => state),
      ["succeeded", "succeeded", "failed", "succeeded", "succeeded"],
    );
  });

  test("prune keeps the serving image, and as many good ones as --keep says", async () => {
    const before = await images();
    assert.ok(before.length > 1, before.join());
    await underLoad(project.origin, async () => {
      assert.match(await hotpush("prune", "--keep", "0"), /^Freed /m);
    });
    const now = await images();
    assert.equal(now.length, 1, now.join());
    const [container = ""] = (await project.containers("app")).map((line) => line.split(" ")[0] ?? "");
    assert.equal(await project.docker("inspect", "--format", "{{.Image}}", container), now[0]);
  });

  async function push(version: string, behaviour: Behaviour): Promise<void> {
    await remote.push((clone) =>
      writeFile(join(clone, "app", "behaviour.json"), JSON.stringify({ version, behaviour })),
    );
  }

  /** Runs a command in the serving container. */
  async function hotpush(...args: readonly string[]): Promise<string> {
    const [name = ""] = await project.instances();
    return project.docker("exec", name, "hotpush", ...args);
  }

  async function log(): Promise<string> {
    const [name = ""] = await project.instances();
    return project.docker("logs", name);
  }

  /** The ids of the app's images. */
  async function images(): Promise<readonly string[]> {
    const listed = await project.docker("images", "--no-trunc", "--quiet", `${project.name}-app`);
    return [...new Set(listed.split("\n").filter(Boolean))];
  }
});
