import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { type Registry, startRegistry } from "../lab/registry.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("services of other kinds on a real engine", (env) => {
  let project: RolledProject;
  let registry: Registry;

  before(async () => {
    registry = await startRegistry();
    project = await makeRolledProject(env);
  });
  after(async () => {
    await project?.remove();
    registry?.close();
  });

  /** Sets the project's additional services, until the next call. */
  function alsoHas(services: Readonly<Record<string, unknown>>): Promise<void> {
    return writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ services }));
  }

  test("images that are not built here are pulled again only with --pull", async () => {
    const image = `${registry.host}/cache:1`;
    await push(image, "one");
    await alsoHas({ cache: { image, init: true } });
    const [, old] = [await project.rollOut(), await project.containers("cache")];
    await push(image, "two");
    await project.docker("tag", await imageWith("one"), image);
    assert.match((await project.rollOut()).output, /^ +cache +unchanged/m);
    const { code, output } = await project.rollOut({ args: ["--pull", "cache"] });
    assert.equal(code, 0, output);
    assert.match(output, / pull .* cache$/m);
    assert.notDeepEqual(await project.containers("cache"), old);
  });

  test("an image that cannot be pulled ends the roll-out before any change", async () => {
    const containers = await project.containers("app");
    await alsoHas({ cache: { image: `${registry.host}/nowhere:1` } });
    const { code, output } = await project.deploy("unpulled", "graceful");
    assert.equal(code, 1, output);
    assert.match(output, /FAILED: The pull of cache failed: .* No container was touched/);
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("a service gets the image that another one builds, even under a new name", async () => {
    const image = `${project.name}-shared`;
    const healthcheck = { test: ["CMD", "true"], start_period: "9s", start_interval: "100ms" };
    const twin = { image, init: true, command: ["sleep", "infinity"], healthcheck };
    await alsoHas({ app: { image }, twin });
    const first = await project.deploy("shared", "graceful");
    assert.equal(first.code, 0, first.output);
    assert.match(first.output, /^ +twin +started +\S+ \(first start\)/m);
    const next = await project.deploy("shared-too", "graceful");
    assert.equal(next.code, 0, next.output);
    assert.match(next.output, /^ +twin +rolled +\S+-twin-1 → \S+-twin-2,/m);
    await project.docker("compose", "rm", "--stop", "--force", "twin");
    await alsoHas({});
  });

  test("a network that compose would recreate ends the roll-out before any change", async () => {
    await project.serving("known");
    const containers = await project.containers("app");
    const networks = { default: { labels: { changed: "yes" } } };
    await writeFile(join(project.directory, "compose.override.yaml"), JSON.stringify({ networks }));
    await project.underLoad(async () => {
      const { code, output } = await project.deploy("networked", "graceful");
      assert.equal(code, 1, output);
      assert.match(
        output,
        /FAILED: The network \S+_default must be recreated, .*docker compose down && docker compose up -d\./,
      );
    });
    assert.deepEqual(await project.containers("app"), containers);
    await alsoHas({});
  });

  test("an anonymous volume is passed on to the new container, and the output says why it is recreated", async () => {
    const keeper = (setting: string) => ({
      image: "debian:trixie-slim",
      command: ["sleep", "infinity"],
      init: true,
      volumes: ["/notes"],
      environment: { SETTING: setting },
    });
    await alsoHas({ keeper: keeper("1") });
    await project.rollOut({ args: ["keeper"] });
    const inIt = ["compose", "exec", "--no-TTY", "keeper", "sh", "-c"];
    await project.docker(...inIt, "echo kept >/notes/note");
    await alsoHas({ keeper: keeper("2") });
    const { code, output } = await project.rollOut({ args: ["keeper"] });
    assert.equal(code, 0, output);
    assert.match(output, /keeper +recreate .* two cannot run: anonymous volume \/notes/);
    assert.equal(await project.docker(...inIt, "cat /notes/note; echo $SETTING"), "kept\n2");
    await project.docker("compose", "stop", "keeper");
    await alsoHas({ keeper: keeper("3") });
    await project.rollOut({ args: ["keeper"] });
    assert.equal(await project.docker(...inIt, "cat /notes/note; echo $SETTING"), "kept\n3");
    await project.docker("compose", "rm", "--stop", "--force", "--volumes", "keeper");
  });

  test("a service that left the compose file keeps running; each roll-out says how to remove it", async () => {
    await alsoHas({});
    const [left = ""] = (await project.containers("cache")).map((line) => line.split(" ")[0] ?? "");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
    const told = `is not in the compose file, but has containers. If it is gone for good: docker rm --force ${left}`;
    assert.match(output, new RegExp(`cache +note +${told}`));
    assert.equal((await project.containers("cache")).length, 1);
  });

  /** Makes an image that differs by `content`, pushes it as `name`, and removes the local name. */
  async function push(name: string, content: string): Promise<void> {
    const directory = join(project.directory, "other");
    const text = `FROM debian:trixie-slim\nLABEL content=${content} com.docker.compose.project=${project.name}\nCMD ["sleep", "infinity"]\n`;
    await writeFile(join(directory, "Dockerfile.cache"), text);
    const file = join(directory, "Dockerfile.cache");
    await project.docker("build", "--quiet", "--file", file, "--tag", name, directory);
    await project.docker("push", "--quiet", name);
    await project.docker("tag", name, `${project.name}-cache:${content}`);
    await project.docker("rmi", name);
  }

  function imageWith(content: string): Promise<string> {
    return project.docker("image", "inspect", "--format", "{{.Id}}", `${project.name}-cache:${content}`);
  }
});
