import assert from "node:assert/strict";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { countRepeatedRuns, recordedDeployments } from "../harness/database.ts";
import { freePort } from "../harness/free-port.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";
import { lingerS, marked, script } from "../lab/self-changing.ts";

onEngine("Hotpush with a published port deploys itself, as a user who is not root", (env) => {
  let project: HostedProject;
  let remote: GitRemote;

  before(async () => {
    const ports = [`127.0.0.1:${await freePort()}:9000`];
    const bare = remotePath({ directory: "$REPO_PATH" });
    // This user has access through the socket's group.
    const socket = statSync((env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""));
    const user = { user: "1000:1000", group_add: [String(socket.gid)] };
    const environment = { REPO_PATH: "/app" };
    const override = { ...marked, ...user, ports, environment, volumes: [`${bare}:${bare}`] };
    project = await makeHosted(env, {
      script,
      override,
      variables: { MARK: "0" },
      prepare: async (prepared) => {
        mountElsewhere(prepared);
        remote = await makeGitRemote(prepared);
        await prepared.docker(
          "run",
          "--rm",
          "--volume",
          `${prepared.directory}:/r`,
          "debian:trixie-slim",
          "chown",
          "-R",
          "1000:1000",
          "/r",
        );
      },
    });
  });
  after(async () => {
    await project?.remove();
    await remote?.remove();
  });

  test("a helper replaces it after its deployment; catch-up finds a lost delivery", async () => {
    const [before] = await project.containers("hotpush");
    const [name = ""] = await project.instances();
    assert.equal(await project.docker("exec", name, "id", "--user"), "1000");
    writeFileSync(join(project.directory, "linger"), lingerS);
    await remote.push((clone) => changed(clone, "first"));
    // As if it arrived while nothing listens: only the new instance's catch-up can find it.
    const untold = await remote.pushUntold((clone) => changed(clone, "untold"));
    assert.equal(await project.ending(1), "succeeded");
    await replaced(before);
    rmSync(join(project.directory, "linger"));
    assert.equal(await project.ending(2), "succeeded");
    const { commit, trigger } = recordedDeployments(project.statePath).find(({ id }) => id === 2) ?? {};
    assert.deepEqual({ commit, trigger }, { commit: untold, trigger: "catch-up" });
    // The old one is being replaced by now. Delivered or not, this push must be deployed.
    const last = await remote.push((clone) => changed(clone, "last"));
    assert.equal(await project.ending(3), "succeeded");
    assert.equal(recordedDeployments(project.statePath).at(-1)?.commit, last);
    assert.equal(countRepeatedRuns(project.statePath), 0);
  });

  async function container(): Promise<string | undefined> {
    return (await project.containers("hotpush"))[0];
  }

  async function replaced(old: string | undefined): Promise<void> {
    await until("another container", async () => (await container()) !== old, 60_000);
    const helper = `${project.name}-hotpush-helper`;
    await until("no helper", async () => !(await project.docker("ps", "--all")).includes(helper), 60_000);
  }
});

/** The container has the repository only at /app; an override could only add a mount. */
function mountElsewhere({ directory }: Pick<HostedProject, "directory">): void {
  const path = join(directory, "compose.yaml");
  const text = readFileSync(path, "utf8");
  const moved = text.replace(`- \${REPO_PATH}:\${REPO_PATH}\n`, `- \${REPO_PATH}:/app\n`);
  assert.notEqual(moved, text);
  writeFileSync(path, moved);
}

async function changed(clone: string, text: string): Promise<void> {
  writeFileSync(join(clone, "change"), text);
}
