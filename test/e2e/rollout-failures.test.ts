import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf, untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

const liveVolumeBytes = 1024 ** 2;

onEngine("a version that fails on a real engine, under load", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, async ({ directory }) => {
      // Can be filled without filling the machine's disk.
      const live = { driver_opts: { type: "tmpfs", device: "tmpfs", o: `size=${liveVolumeBytes}` } };
      const file = join(directory, "compose.yaml");
      const text = await readFile(file, "utf8");
      await writeFile(file, text.replace(/^ {2}live:$/m, `  live: ${JSON.stringify(live)}`));
      const services = { app: { env_file: ["app.env"] } };
      await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services }));
      await writeFile(join(directory, "app.env"), "DATABASE=Server=db;Password=secret-in-env_file;\n");
    });
  });
  after(() => project?.remove());

  test("a version that never gets healthy, or crashes at its start, is abandoned, and the old one serves", async () => {
    await project.serving("known");
    const { versions } = await project.underLoad(async () => {
      const env = { HEALTHY_TIMEOUT: "4s" };
      const sick = await outputOf(project.deploy("sick", "sick", { env }), 1);
      assert.match(sick, /was not healthy after 4(\.\d)? s \(last: starting\)/);
      assert.match(sick, /version sick is sick: no disk left in the app \(Server=db;Password=\*\*\*;\)/);
      assert.match(sick, /version sick starts/, "the last log lines are shown");
      const crashing = await outputOf(project.deploy("crashing", "crashes"), 1);
      assert.match(crashing, /cannot start: no database named "shop" \(Server=db;Password=\*\*\*;\)/);
      assert.doesNotMatch(sick + crashing, /secret-in-env_file/);
    });
    assert.deepEqual(versions, ["known"]);
    assert.equal((await project.containers("app")).length, 1);
    await project.docker("compose", "up", "--detach");
    assert.equal(await project.version(), "known", "plain compose does not start what failed");
  });

  test("a build that fails touches no container", async () => {
    await project.serving("known");
    const containers = await project.containers("app");
    await withDockerfile(
      "app",
      (good) => `${good}RUN echo "no such module: left-pad" && false\n`,
      () =>
        project.underLoad(async () => {
          const output = await outputOf(project.deploy("unbuildable", "graceful"), 1);
          assert.match(
            output,
            /^FAILED: The build of app, other failed: .*: no such module: left-pad\. No new container/m,
          );
        }),
    );
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("with no disk space left for the live file, the old version stays", async () => {
    await project.serving("known");
    const containers = await project.containers("app");
    const filler = join(await project.livePath(), "filler");
    await writeFile(filler, Buffer.alloc(2 * liveVolumeBytes)).catch(() => {});
    try {
      await project.underLoad(async () => {
        const output = await outputOf(project.deploy("unswitched", "graceful"), 1);
        assert.match(output, /FAILED: The live files in \S+ could not be written: ENOSPC/);
      });
    } finally {
      await rm(filler);
    }
    assert.deepEqual(await project.containers("app"), containers);
    assert.equal(await project.version(), "known");
  });

  test("a version that is healthy but answers badly through the proxy is rolled back", async () => {
    await project.serving("known");
    await project.write("broken", "broken");
    let slow: Promise<Response> | undefined;
    const { code, output } = await untilPrinted(project.spawnRollout(), /app +start /, async () => {
      slow = fetch(`${project.origin}/?ms=8000`);
    });
    assert.equal(code, 1, output);
    assert.match(output, /did not answer well through the proxy .*status 500/);
    assert.match(output, /app +drain .* not drained: the requests go back there/);
    assert.equal((await slow)?.status, 200, "a request that the old version had begun is answered");
    assert.match(output, /version broken starts/, "the last log lines are shown");
    assert.equal((await project.containers("app")).length, 1);
    const { versions } = await project.underLoad(async () => {});
    assert.deepEqual(versions, ["known"]);
  });

  test("a version that crashes at its first requests is rolled back", async () => {
    await project.serving("known");
    const output = await outputOf(project.deploy("falling", "falls"), 1);
    assert.match(output, /did not answer .*through the proxy|was ready, then (?:crashed|ended)/);
    assert.equal((await project.containers("app")).length, 1);
    assert.equal(await project.version(), "known");
  });

  test("when one service fails, those replaced before go back; a recreated one is named", async () => {
    await project.serving("known");
    const others = await project.containers("other");
    const override = join(project.directory, "compose.override.yaml");
    await writeFile(override, JSON.stringify({ services: { other: { depends_on: ["app"] } } }));
    await withDockerfile(
      "other",
      () => 'FROM debian:trixie-slim\nCMD ["false"]\n',
      async () => {
        const { versions } = await project.underLoad(async () => {
          const output = await outputOf(project.deploy("half", "graceful", { env: { SETTING: "2" } }), 1);
          assert.match(output, /app +note +goes back to the old version, because another service failed/);
          assert.match(output, /single +note +stays at the new version, .* was recreated.*rollout single$/m);
        });
        assert.deepEqual(versions, ["known", "half"]);
      },
    );
    assert.equal(await project.version(), "known");
    assert.deepEqual(await project.containers("other"), others);
    await rm(override);
  });

  test("a container that a person's docker compose up made during the build is replaced in turn", async () => {
    await project.serving("known");
    await project.write("after-hand", "graceful");
    const byHand = ["compose", "up", "--detach", "--no-build", "--force-recreate", "app"];
    const slowly = (good: string) => `${good}RUN : ${project.name} && sleep 5\n`;
    await withDockerfile("app", slowly, async () => {
      const rollout = project.spawnRollout();
      const { code, output } = await untilPrinted(rollout, /sleep 5/, () => project.docker(...byHand));
      assert.equal(code, 0, output);
    });
    assert.equal((await project.containers("app")).length, 1);
    assert.equal(await project.version(), "after-hand");
  });

  test("a version that fails goes back to what a person stopped during its build", async () => {
    await project.serving("known");
    await project.write("broken", "broken");
    const stop = () => project.docker("compose", "stop", "app");
    await withDockerfile(
      "app",
      (good) => `${good}RUN : stopped in ${project.name} && sleep 5\n`,
      async () => {
        const { code, output } = await untilPrinted(project.spawnRollout(), /sleep 5/, stop);
        assert.equal(code, 1, output);
      },
    );
    assert.equal((await project.containers("app")).length, 1);
    assert.equal(await project.version(), "known");
  });

  test("a version that fails stays if its old containers are gone", async () => {
    await project.serving("known");
    await project.write("broken", "broken");
    const old = await project.containerNames("app");
    const { code, output } = await untilPrinted(project.spawnRollout(), /app +start /, () =>
      project.docker("rm", "--force", ...old),
    );
    assert.equal(code, 1, output);
    assert.match(output, /could not go back: its old containers do not run any more, so the new/);
    const { length } = await project.containers("app");
    assert.deepEqual([length, await project.version()], [1, "broken"]);
  });

  /** Does `work` with another Dockerfile of a service. */
  async function withDockerfile(
    service: string,
    change: (good: string) => string,
    work: () => Promise<unknown>,
  ): Promise<void> {
    const path = join(project.directory, service, "Dockerfile");
    const good = await readFile(path, "utf8");
    await writeFile(path, change(good));
    try {
      await work();
    } finally {
      await writeFile(path, good);
    }
  }
});
