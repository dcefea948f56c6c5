import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf, readLive } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("three replicas, each with a live file of its own", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, async ({ directory, env: settings }) => {
      settings.REPLICAS = "3";
      const caddyfile = join(directory, "Caddyfile");
      const all = ["app", "app.2", "app.3"].map((file) => `{file./run/live/${file}}:8080`).join(" ");
      await writeFile(
        caddyfile,
        (await readFile(caddyfile, "utf8")).replace("{file./run/live/app}:8080", all),
      );
    });
  });
  after(() => project?.remove());

  test("three replicas replace three, and no request fails during the switch", async () => {
    const { versions } = await project.underLoad(async () => {
      const { code, output } = await project.deploy("second", "dies-on-sigterm");
      assert.equal(code, 0, output);
    });
    assert.deepEqual(versions, ["first", "second"]);
    const names = await project.containerNames("app");
    assert.equal(names.length, 3);
    assert.deepEqual((await live()).sort(), names.sort());
  });

  test("one replica that replaces three that die on SIGTERM gets all requests", async () => {
    await project.underLoad(async () => {
      await outputOf(project.rollOut({ env: { REPLICAS: "1" } }));
    });
    const [only, ...more] = await project.containerNames("app");
    assert.deepEqual(more, []);
    assert.deepEqual([...new Set(await live())], [only]);
  });

  test("with no replicas, new requests are refused, open ones end, and the container is removed", async () => {
    const slow = fetch(`${project.origin}/?ms=3000`);
    const output = await outputOf(project.rollOut({ env: { REPLICAS: "0" } }));
    assert.equal((await slow).status, 200, output);
    assert.match(output, /^ +app +removed +\S+ \(no replicas\)/m);
    assert.deepEqual(await project.containers("app"), []);
    assert.deepEqual([...new Set(await live())], ["nobody.invalid"]);
    assert.equal((await fetch(project.origin)).status, 502);
    const again = await project.rollOut({ env: { REPLICAS: "0" } });
    assert.match(again.output, /^ +app +unchanged/m, again.output);
    const back = await project.rollOut({ env: { REPLICAS: "1" } });
    assert.equal(back.code, 0, back.output);
    assert.equal(await project.version(), "second");
  });

  function live(): Promise<string[]> {
    return Promise.all(["app", "app.2", "app.3"].map((file) => readLive(project, file)));
  }
});
