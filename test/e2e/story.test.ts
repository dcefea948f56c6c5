import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deliver, githubPush, statePaths, testSecret } from "../harness/delivery.ts";
import { readDeployments, readRecorded, recordedDeliveryCount } from "../harness/records.ts";
import { git } from "../harness/repository.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { assertNoneLost, startPushes, underLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  type Behaviour,
  buildImage,
  endingIn,
  makeProject,
  messagesIn,
  removeImage,
  type TestProject,
  writeVersion,
} from "../lab/project.ts";

const example = join(import.meta.dirname, "../../examples/compose");
const script = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

const restarts = 3;

const lingering = "#!/bin/sh\nwhile [ -e linger ]; do sleep 0.1; done\n";

/** Changes the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
`;

/** Restarts Hotpush in the middle of its first attempt. */
const restarting = `#!/bin/sh
[ -e attempted ] || { touch attempted; docker restart "$(cat /etc/hostname)"; }
`;

onEngine("from git push to live, on a real engine, in the real image", (env) => {
  let project: TestProject;
  let remote: GitRemote;
  let image: string;
  /** The state directory of Hotpush, as the host sees the volume. */
  let statePath: string;

  before(async () => {
    project = await makeProject(env);
    image = `hotpush-e2e:${project.name}`;
    await buildImage(env, image);
    await writeFiles(project, image);
    remote = await makeGitRemote(project);
    await project.docker("compose", "up", "--detach", "--build", "--wait");
    const format = ["--format", "{{.Mountpoint}}"];
    statePath = await project.docker("volume", "inspect", `${project.name}_hotpush`, ...format);
    statePaths.set(project.origin, statePath);
  });
  after(async () => {
    await project?.remove();
    await removeImage(env, image);
    await remote?.remove();
  });

  test("the first push is live, and hotpush rollback restores what was there before; no request failed", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await push("second", "graceful");
      assert.equal(await ending(1), "succeeded", await log());
      assert.match(await hotpush("rollback"), /^Deployment 2 goes back to \d{12}\.$/m);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.equal(await ending(2), "succeeded", await log());
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
      assert.equal(await ending(3), "failed", await log());
    });
    assert.deepEqual(versions, ["second"]);
    const text = await log();
    assert.match(text, /"event":"deployment\.failed","deployment":3/);
    assert.match(text, /version broken-one cannot start: no database named/);
    assert.deepEqual(
      readDeployments(statePath).map(({ state }) => state),
      ["succeeded", "succeeded", "failed"],
    );
  });

  test("prune keeps the serving image, and as many good ones as --keep says", async () => {
    await push("third", "graceful");
    assert.equal(await ending(4), "succeeded", await log());
    const before = await images();
    assert.ok(before.length > 1, before.join());
    await underLoad(project.origin, async () => {
      assert.match(await hotpush("prune", "--keep", "0"), /^Freed /m);
    });
    const now = await images();
    assert.equal(now.length, 1, now.join());
    const [container = ""] = await project.containerNames("app");
    assert.equal(await project.docker("inspect", "--format", "{{.Image}}", container), now[0]);
  });

  test("a deployment leaves Hotpush alone, though its part of the compose file has changed", async () => {
    // From here on, each pushed commit is deployed unseen.
    git(project.directory, "remote", "remove", "origin");
    writeScript(join(project.directory, "deploy.sh"), changing);
    const before = await project.containers("hotpush");
    await assertSucceeds();
    assert.deepEqual(await project.containers("hotpush"), before);
  });

  test("a roll-out of it is refused, with the command that replaces it", async () => {
    const name = await ownName();
    const asked = project.docker("exec", name, "hotpush", "rollout", "hotpush");
    const stdout = /docker compose up --detach hotpush/;
    await assert.rejects(asked, { stdout });
    const [old] = await project.containers("hotpush");
    await project.docker("compose", "up", "--detach", "--wait", "hotpush");
    assert.notEqual((await project.containers("hotpush"))[0], old);
  });

  test("a deployment that restarts it runs again, and then succeeds", async () => {
    writeScript(join(project.directory, "deploy.sh"), restarting);
    const rows = await assertSucceeds();
    assert.equal(rows[0]?.attempts, 2);
  });

  test("restarted under 20 pushes a second, also while a deployment runs, it answers and records each", async (t) => {
    const linger = join(project.directory, "linger");
    writeScript(join(project.directory, "deploy.sh"), lingering);
    const pushes = startPushes(project.origin);
    t.after(() => pushes.stop());
    for (let round = 1; round < restarts; round += 1) await restart();
    writeFileSync(linger, "");
    await until("a deployment runs", () =>
      readDeployments(statePath).some(({ state }) => state === "running"),
    );
    const name = await ownName();
    const before = await countEvents(name, "deployment.interrupted");
    await restart();
    assert.ok((await countEvents(name, "deployment.interrupted")) > before, "it was cut off");
    rmSync(linger);
    const results = await pushes.stop();
    await assertNoneLost(results, statePath);
    const slowestMs = Math.max(...results.map(({ tookMs }) => tookMs));
    t.diagnostic(`the slowest push waited ${slowestMs} ms`);
  });

  test("Caddy sends a POST again that reached no container, and none that the app cut off", async () => {
    const request = { method: "POST", body: "x".repeat(1_000) };
    const file = join(await project.livePath(), "app");
    const live = await readFile(file);
    await writeFile(file, "nobody");
    assert.match(await (await fetch(project.origin, request)).text(), / POST 1000$/);
    await writeFile(file, live);
    assert.equal((await fetch(`${project.origin}/reset`, request)).status, 502);
    const [app = ""] = await project.containerNames("app");
    assert.equal((await project.docker("logs", app)).match(/^cut off$/gm)?.length, 1);
  });

  async function push(version: string, behaviour: Behaviour): Promise<void> {
    await remote.push((clone) => writeVersion(clone, version, behaviour));
  }

  function ending(id: number): Promise<string> {
    return endingIn(statePath)(id);
  }

  /** The name of Hotpush's container. */
  async function ownName(): Promise<string> {
    return (await project.containerNames("hotpush"))[0] ?? "";
  }

  /** Runs a command in the serving container. */
  async function hotpush(...args: readonly string[]): Promise<string> {
    const name = await ownName();
    return project.docker("exec", name, "hotpush", ...args);
  }

  async function log(): Promise<string> {
    const name = await ownName();
    return project.docker("logs", name);
  }

  /** The ids of the app's images. */
  async function images(): Promise<readonly string[]> {
    const listed = await project.docker("images", "--no-trunc", "--quiet", `${project.name}-app`);
    return [...new Set(listed.split("\n").filter(Boolean))];
  }

  /** Pushes, and waits for the end. If the deployment does not succeed, the error has the log of the container. */
  async function assertSucceeds() {
    const { json } = await deliver(project.origin, githubPush());
    const id = json.deployment?.id ?? 0;
    const name = await ownName();
    assert.equal(await ending(id), "succeeded", await project.docker("logs", name));
    return readRecorded(statePath, ({ all }) => all(`SELECT attempts FROM deployments WHERE id = ${id}`));
  }

  async function restart(): Promise<void> {
    await morePushes();
    const name = await ownName();
    const before = await countEvents(name, "service.started");
    await project.docker("restart", name);
    await until("Hotpush listens again", async () => (await countEvents(name, "service.started")) > before);
    await morePushes();
  }

  /** Waits for enough answers to include those that were delayed while nothing listened. */
  async function morePushes(): Promise<void> {
    const known = recordedDeliveryCount(statePath);
    await until("more pushes are recorded", () => recordedDeliveryCount(statePath) >= known + 25);
  }

  async function countEvents(name: string, event: string): Promise<number> {
    return (await project.docker("logs", name)).split(`"event":"${event}"`).length - 1;
  }
});

/** examples/compose with the lab's app in it, and with Hotpush from its real image. */
async function writeFiles(project: TestProject, image: string): Promise<void> {
  const { directory, env } = project;
  for (const name of ["compose.yaml", "Caddyfile", "other"])
    await rm(join(directory, name), { recursive: true, force: true });
  const isOurs = (path: string) => !path.startsWith(join(example, "app"));
  await cp(example, directory, { recursive: true, filter: isOurs });
  await project.write("first", "graceful");
  const services = {
    app: { healthcheck: { test: ["CMD", "./healthcheck.sh"] } },
    hotpush: {
      labels: { mark: `\${MARK}` },
      // The repository has another path than on the host: roll-outs, roll back and prune must handle that.
      environment: { REPO_PATH: "/app" },
      // The container sees the remote at its path on the host.
      volumes: [`${remotePath(project)}:${remotePath(project)}`, `${directory}:/app`],
    },
  };
  await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services }));
  const settings = {
    COMPOSE_PROJECT_NAME: project.name,
    SITE: ":80",
    HTTP_PORT: new URL(project.origin).port,
    HTTPS_PORT: "0",
    REPO_PATH: directory,
    WEBHOOK_SECRET: testSecret,
    HOTPUSH_IMAGE: image,
    DOCKER_SOCKET: (env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""),
    CHECK_URL: "http://caddy/",
    MARK: "0",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(directory, ".env"), lines.join(""));
  writeScript(join(directory, "deploy.sh"), script);
}
