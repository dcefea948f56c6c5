import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { countingLines } from "../../src/rollout/requests.ts";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf, readLive } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("a roll-out on a real engine, under load", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  test("a good version takes over with no request failed, and unchanged services are untouched", async () => {
    const others = await untouched();
    const [old] = await project.containers("app");
    const { versions } = await project.underLoad(async () => {
      const output = await outputOf(project.deploy("good", "graceful"));
      assert.match(output, /^ +app +rolled +\S+ → \S+, healthy after [\d.]+ m?s, drained in [\d.]+ m?s$/m);
      assert.match(output, /^ +single +unchanged/m);
      assert.match(output, /The requests were not counted/);
      for (const line of countingLines("/run/live", null)) assert.ok(output.includes(`\n${line}\n`), line);
    });
    assert.deepEqual(versions, ["first", "good"]);
    assert.deepEqual(await untouched(), others);
    const now = await project.containers("app");
    assert.equal(now.length, 1);
    assert.notEqual(now[0], old);
    assert.equal(await readLive(project), now[0]?.split(" ")[0]);
  });

  test("plain compose finds nothing to do after a roll-out", async () => {
    const before = await project.containers("app");
    await project.docker("compose", "up", "--detach");
    assert.deepEqual(await project.containers("app"), before);
  });

  test("a service that cannot run twice is recreated; the output says why and for how long it was down", async () => {
    const before = await project.containers("single");
    await project.underLoad(async () => {
      const output = await outputOf(project.deploy("known", "graceful", { env: { SETTING: "2" } }));
      assert.match(output, /^ +single +recreated .* [\d.]+ m?s \(label hotpush\.rollout=recreate\)$/m);
    });
    assert.notDeepEqual(await project.containers("single"), before);
  });

  test("the previous good version comes back without a build", async () => {
    await project.serving("later");
    const { versions } = await project.underLoad(async () => {
      const output = await outputOf(project.rollOut({ args: ["--back"] }));
      assert.doesNotMatch(output, / build /);
    });
    assert.deepEqual(versions, ["later", "known"]);
  });

  test("prune keeps the live image and the two good ones before it, and removes the others", async () => {
    await project.serving("kept");
    await project.serving("live");
    assert.ok((await imagesOfApp()).size > 3);
    const nameless = await buildNameless(project.name);
    const foreign = await buildNameless("somebody-else");
    const output = await outputOf(project.hotpush("prune"));
    assert.match(output, /^Freed /m);
    assert.equal((await imagesOfApp()).size, 3);
    assert.ok(!(await isThere(nameless)), "an image of this project that has lost its name goes");
    assert.ok(await isThere(foreign), "one of another project stays");
    assert.ok(await isThere("debian:trixie-slim"), "other images stay");
    await project.docker("rmi", foreign);
    assert.equal((await project.rollOut({ args: ["--back"] })).code, 0);
    assert.equal(await project.version(), "kept");
  });

  test("with --prune, old images go meanwhile, but not the tag of a commit that changed none", async () => {
    await project.serving("three");
    // The version is not recorded yet, so one version more stays than with a prune afterwards.
    const output = await outputOf(project.deploy("three", "graceful", { args: ["--prune"] }));
    assert.match(output, / prune .* removed, /);
    const commit = /^Rolling out \S+ at (\w+)/m.exec(output)?.[1];
    assert.ok(await isThere(`${project.name}-app:${commit}`), output);
  });

  test("prune keeps the image of a service in an inactive profile, even if its env file is missing", async () => {
    const backup = { build: "other", profiles: ["backup"], env_file: "backup.env" };
    const override = join(project.directory, "compose.override.yaml");
    await writeFile(override, JSON.stringify({ services: { backup } }));
    await writeFile(join(project.directory, "backup.env"), "");
    await project.docker("compose", "--profile", "backup", "build", "backup");
    await rm(join(project.directory, "backup.env"));
    const output = await outputOf(project.hotpush("prune"));
    assert.ok(await isThere(`${project.name}-backup`), output);
    await rm(override);
    assert.equal((await project.hotpush("prune")).code, 0);
    assert.ok(!(await isThere(`${project.name}-backup`)), "without the profile, nothing needs it");
  });

  test("an unknown service is named, with the known ones", async () => {
    const { code, output } = await project.rollOut({ args: ["ap"] });
    assert.equal(code, 1);
    assert.match(output, /There is no service ap .* It has: app, caddy, single, other\./);
  });

  async function untouched(): Promise<readonly string[]> {
    const services = await Promise.all(
      ["caddy", "other", "single"].map((service) => project.containers(service)),
    );
    return services.flat();
  }

  /** Makes an untagged image, as a build leaves it after the next one. @returns its id */
  async function buildNameless(owner: string): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), "hotpush-nameless-"));
    await writeFile(join(directory, "Dockerfile"), `FROM debian:trixie-slim\nENV OWNER=${owner}\n`);
    const label = `com.docker.compose.project=${owner}`;
    const id = await project.docker("build", "--quiet", "--label", label, directory);
    await rm(directory, { recursive: true });
    return id;
  }

  function isThere(image: string): Promise<boolean> {
    return project.docker("image", "inspect", image).then(
      () => true,
      () => false,
    );
  }

  async function imagesOfApp(): Promise<ReadonlySet<string>> {
    const ids = await project.docker("images", "--quiet", "--no-trunc", `${project.name}-app`);
    return new Set(ids.split("\n").filter(Boolean));
  }
});
