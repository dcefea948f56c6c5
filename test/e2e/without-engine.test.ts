import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onOwnEngine("alone", "the engine itself goes away in mid roll-out", (env, engine) => {
  let project: RolledProject;

  before(async () => {
    // Containers of a Swarm do not outlive their engine.
    await engine.leaveSwarm();
    await engine.liveRestore(true);
    project = await makeRolledProject(env, async ({ directory }) => {
      const caddyfile = join(directory, "Caddyfile");
      // The engine resolves names: until it is back, requests wait.
      const text = (await readFile(caddyfile, "utf8")).replace("lb_try_duration 10s", "lb_try_duration 50s");
      await writeFile(caddyfile, text);
    });
  });
  after(async () => {
    await project?.remove();
    await engine.liveRestore(false);
  });

  test("no request fails, the roll-out reports that the engine is gone, and the next one recovers", async () => {
    const { versions } = await underLoad(await originOfCaddy(), async () => {
      await project.write("half-way", "slow-start");
      const rollout = project.spawnRollout();
      const { code, output } = await untilPrinted(rollout, /app +start /, async () => engine.kill());
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: .*Docker/);
      await engine.start();
      const next = await project.deploy("next", "graceful");
      assert.equal(next.code, 0, next.output);
      assert.match(next.output, /app +recover .*left by an earlier roll-out/);
    });
    assert.deepEqual(versions, ["first", "next"]);
    assert.equal((await project.containers("app")).length, 1);
  });

  /** A published port goes away with the engine; the container's own address stays. */
  async function originOfCaddy(): Promise<string> {
    const format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    return `http://${await project.docker("inspect", "--format", format, `${project.name}-caddy-1`)}`;
  }
});
