import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { type Ending, makeProject, outputOf, readLive, type TestProject } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("two projects with the same volume of live files and a service of the same name", (env) => {
  let first: RolledProject;
  let second: TestProject;

  before(async () => {
    first = await makeRolledProject(env);
    second = await makeProject(env);
    await second.write("second", "graceful");
    const volumes = { live: { name: `${first.name}_live`, external: true } };
    // The first one's Caddy reads the live files; this one needs none.
    const services = { app: { labels: { "hotpush.check": "" } }, caddy: { profiles: ["none"] } };
    const override = join(second.directory, "compose.override.yaml");
    await writeFile(override, JSON.stringify({ services, volumes }));
  });
  after(async () => {
    await second?.remove();
    await first?.remove();
  });

  test("a live file that names the other project's container is refused before any change", async () => {
    const live = await readLive(first);
    const { versions } = await first.underLoad(async () => refused(await rollOutSecond(), live));
    assert.deepEqual(versions, ["first"]);
    assert.equal(await readLive(first), live);
  });

  test("a live file is replaced once the other project is down, as the refusal advises", async () => {
    const [, advice = ""] = /gone for good: docker (.+ down)\. /.exec((await rollOutSecond()).output) ?? [];
    await first.docker(...advice.split(" "));
    await outputOf(rollOutSecond());
    const [name] = await second.containerNames("app");
    assert.equal(await readLive(first), name);
  });

  /** The volume belongs to the first project, so Hotpush gets its path from the test. */
  async function rollOutSecond(): Promise<Ending> {
    return second.rollOut({ env: { HOTPUSH_LIVE_PATH: await first.livePath() } });
  }

  async function refused({ code, output }: Ending, name: string): Promise<void> {
    assert.equal(code, 1, output);
    const told = `FAILED: The live file \\S+/app of the project ${second.name} names ${name}, a container of the project ${first.name}`;
    assert.match(output, new RegExp(told));
    assert.doesNotMatch(output, / build /);
    assert.deepEqual(await second.containers("app"), []);
  }
});
