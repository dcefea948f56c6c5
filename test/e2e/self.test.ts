import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { countRepeatedRuns, recordedDeployments, recordedStates } from "../harness/database.ts";
import { deliver, githubPush, testSecret } from "../harness/delivery.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";
import { freePort } from "../lab/project.ts";
import { assertNoneLost, startPushes } from "../lab/pushes.ts";

/** Ten take a minute; three show that one follows the other. */
const replacements = Number(process.env.HOTPUSH_E2E_REPLACEMENTS ?? 3);

/** Each deployment changes the configuration of Hotpush itself, and nothing else. */
const script = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
sleep "$(cat linger 2>/dev/null || echo 0)"
`;
/** Longer than a service that is told to stop lets a script go on. */
const lingerS = "7";
const marked = { labels: { mark: `\${MARK}` } };

onEngine("Hotpush deploys itself behind the proxy", (env) => {
  let project: HostedProject;

  before(async () => {
    project = await makeHosted(env, { script, override: marked, variables: { MARK: "0" } });
  });
  after(() => project?.remove());

  test(`${replacements} times under 20 pushes a second, none is lost or cut off`, async (t) => {
    const pushes = startPushes(project.origin);
    const seen = new Set<string>();
    await until(
      `${replacements} replacements`,
      async () => {
        seen.add(await project.live());
        return seen.size > replacements;
      },
      replacements * 60_000,
    ).catch(async (error: unknown) => {
      await pushes.stop();
      throw error;
    });
    const results = await pushes.stop();
    await assertNoneLost(results, project.statePath);
    const states = recordedStates(project.statePath);
    const succeeded = [...states.values()].filter((state) => state === "succeeded").length;
    t.diagnostic(
      `${results.length} pushes, ${succeeded} deployed, the rest superseded; ${seen.size - 1} replacements`,
    );
    assert.ok(succeeded >= replacements, `${succeeded} succeeded`);
    assert.equal(countRepeatedRuns(project.statePath), 0, "each was seen to its end where it was started");
    await until("one instance", async () => (await project.instances()).length === 1);
    assert.deepEqual(await project.instances(), [await project.live()]);
  });

  test("a script that goes on after its roll-out is seen to its end before the old one leaves", async () => {
    const path = join(project.directory, "linger");
    writeFileSync(path, lingerS);
    const { json } = await deliver(project.origin, githubPush());
    assert.equal(await project.ending(json.deployment?.id ?? 0), "succeeded");
    rmSync(path);
    assert.equal(countRepeatedRuns(project.statePath), 0);
    await until("one instance", async () => (await project.instances()).length === 1);
  });

  test("a roll-out by hand in its container ends well before the old one leaves", async () => {
    await until("one instance", async () => (await project.instances()).length === 1);
    const old = await project.live();
    const settings = join(project.directory, ".env");
    await project.docker("exec", old, "sed", "-i", "s/^MARK=.*/MARK=by-hand/", settings);
    // Rejects unless its exit code is 0.
    const output = await project.docker("exec", old, "hotpush", "rollout", "--json");
    assert.match(output.split("\n").at(-1) ?? "", /"event":"finished"/);
    await until("one instance", async () => (await project.instances()).length === 1);
    assert.notEqual(await project.live(), old);
  });

  test("the old one killed in the middle of its own replacement: the new one ends the deployment", async () => {
    const old = await project.live();
    const { json } = await deliver(project.origin, githubPush());
    await until("the switch", async () => (await project.live()) !== old, 60_000);
    await project.docker("kill", old);
    assert.equal(await project.ending(json.deployment?.id ?? 0), "succeeded");
    await until("one instance", async () => (await project.instances()).length === 1);
  });

  for (const [what, helper] of [
    ["whose new container does not serve", null],
    [
      "whose helper fails",
      { name: "hotpush-e2e-helper", project: "none", args: ["rollout", `--nonsense=${testSecret}`] },
    ],
  ] as const) {
    test(`a replacement ${what} is given up, and the old container goes on`, async () => {
      await until("one instance", async () => (await project.instances()).length === 1);
      const name = await project.live();
      const old = await project.docker("inspect", "--format", "{{.Id}}", name);
      const notePath = join(project.statePath, "replacement.json");
      writeFileSync(`${notePath}.new`, JSON.stringify({ old, helper }), { mode: 0o600 });
      renameSync(`${notePath}.new`, notePath);
      await until("the note is gone", () => !existsSync(notePath), 60_000);
      // Docker takes its time to keep what was logged.
      const log = await until("it is logged", async () => {
        const text = await project.docker("logs", name);
        return text.includes(`"event":"service.not_replaced"`) && text;
      });
      assert.ok(!log.includes(testSecret), "no secret in what the helper wrote");
      const { json } = await deliver(project.origin, githubPush());
      assert.equal(await project.ending(json.deployment?.id ?? 0), "succeeded");
    });
  }
});

onEngine("Hotpush with a published port deploys itself, as a user who is not root", (env) => {
  let project: HostedProject;
  let remote: GitRemote;

  before(async () => {
    const ports = [`127.0.0.1:${await freePort()}:9000`];
    const bare = remotePath({ directory: "$REPO_PATH" });
    // The socket's group is what lets this user in.
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

  test("by a helper container, after its deployment is recorded; a delivery that is lost meanwhile is caught up with", async () => {
    const [before] = await project.containers("hotpush");
    const [name = ""] = await project.instances();
    assert.equal(await project.docker("exec", name, "id", "--user"), "1000");
    writeFileSync(join(project.directory, "linger"), lingerS);
    await remote.push((clone) => changed(clone, "first"));
    // As if it came while nothing listens: only the new instance's look at the remote can find it.
    const untold = await remote.pushUntold((clone) => changed(clone, "untold"));
    assert.equal(await project.ending(1), "succeeded");
    await replaced(before);
    rmSync(join(project.directory, "linger"));
    assert.equal(await project.ending(2), "succeeded");
    const { commit, trigger } = recordedDeployments(project.statePath).find(({ id }) => id === 2) ?? {};
    assert.deepEqual({ commit, trigger }, { commit: untold, trigger: "catch-up" });
    // That one is being replaced by now: whether this is delivered or not, it is deployed.
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

/** The container has the repository at /app, and nowhere else: an override could only add a mount. */
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
