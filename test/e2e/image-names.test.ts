import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "../harness/listen.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeProject, outputOf, type TestProject, versionAt } from "../lab/project.ts";

type Services = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** On containerd's store an image ends with the last of its names, also one that a container runs. */
onEngine("images whose names a build takes", (env) => {
  let project: TestProject;
  let port: number;
  const byHand = (...args: readonly string[]) => project.docker("compose", ...args);
  /** `rolled` has one container beside the other; `kept` is recreated. */
  const services = (): Services => ({
    rolled: { build: "app" },
    kept: { build: "app", ports: [`127.0.0.1:${port}:8080`], labels: { "hotpush.healthy-timeout": "5s" } },
  });
  const write = (more: Services = {}) => {
    // Docker's own first look comes late: until then it calls a new container starting.
    const often = { interval: "30s", start_period: "30s", start_interval: "3s" };
    const healthcheck = { test: ["CMD", "./healthcheck.sh"], ...often };
    const all = Object.entries({ ...services(), ...more }).map(([name, service]) => {
      return [name, { healthcheck, stop_grace_period: "1s", ...service }];
    });
    const text = JSON.stringify({ services: Object.fromEntries(all) });
    return writeFile(join(project.directory, "compose.yaml"), text);
  };
  const served = () => versionAt(`http://127.0.0.1:${port}`);
  const rollOut = (digit: string, ...args: readonly string[]) =>
    project.rollOut({ args: ["--commit", digit.repeat(40), ...args] });
  const isHere = (name: string) =>
    project.docker("image", "inspect", name).then(
      () => true,
      () => false,
    );

  before(async () => {
    project = await makeProject(env);
    port = await freePort();
    await write();
  });
  after(() => project?.remove());

  test("after `up --build` and a build by hand, the first roll-out deploys", async () => {
    await project.write("first", "graceful");
    await byHand("up", "--detach", "--build", "--wait");
    await project.write("by hand", "graceful");
    await byHand("build");
    await project.write("pushed", "graceful");
    await outputOf(rollOut("1"));
    assert.equal(await served(), "pushed");
  });

  test("what was started by hand comes back if the next version of its service fails", async () => {
    await project.write("by-hand", "graceful");
    await byHand("up", "--detach", "--build", "kept");
    await project.write("bad", "crashes");
    const output = await outputOf(rollOut("3"), 1);
    assert.match(output, /kept +roll back .* the old version runs again/);
    assert.equal(await served(), "by-hand");
  });

  test("after a failed build, each name stands for what runs", async () => {
    const running = await images();
    await write({
      broken: {
        build: { context: "other", dockerfile_inline: "FROM debian:trixie-slim\nRUN sleep 1; false" },
      },
    });
    await project.write("unbuilt", "graceful");
    await outputOf(rollOut("4"), 1);
    const named = project.docker("image", "inspect", "--format", "{{.Id}}", `${project.name}-kept`);
    assert.deepEqual([await named, await images()], [running.split(" ")[1], running]);
    await write();
  });

  test("--prune leaves every good version its name, though Docker has not checked the new container yet", async () => {
    for (const version of ["5", "6", "7"]) {
      await byHand("up", "--detach", "--no-recreate", "--no-build", "--wait", "rolled");
      await project.write(`v${version}`, "graceful");
      await outputOf(rollOut(version, "--prune"));
      assert.ok(await isHere(`${project.name}-rolled:${version.repeat(12)}`), version);
    }
    for (const version of ["5", "6"]) {
      await outputOf(project.rollOut({ args: ["--back", version.repeat(12)] }));
      assert.equal(await served(), `v${version}`);
    }
  });

  test("an image of two services, or for two platforms, is built once and for this machine, by compose's name for it", async () => {
    const build = { context: "app", platforms: ["linux/amd64", "linux/arm64"] };
    const image = `${project.name}_shared`;
    await write({ twin: { build: "app", image }, other: { build: "app", image }, many: { build } });
    await writeFile(join(project.directory, ".env"), "COMPOSE_COMPATIBILITY=1\n");
    await project.write("shared", "graceful");
    await outputOf(rollOut("9"));
    assert.equal(await served(), "shared");
    for (const name of [image, `${project.name}_many`]) assert.ok(await isHere(`${name}:999999999999`), name);
  });

  const images = async () => {
    const ids = ["rolled", "kept"].map(async (service) => {
      const [line = ""] = await project.containers(service);
      return project.docker("inspect", "--format", "{{.Image}}", line.split(" ")[1] ?? "");
    });
    return (await Promise.all(ids)).join(" ");
  };
});
