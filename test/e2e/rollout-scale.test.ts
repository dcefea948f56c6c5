import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { readLive, type TestProject } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("behind a proxy that follows Docker's health itself, on a real engine", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, (made) => writeOverride(made, "scale"));
  });
  after(() => project?.remove());

  test("an app that serves for some seconds after SIGTERM loses no request; no live file is written", async () => {
    assert.equal((await project.deploy("old", "lingers")).code, 0);
    const { versions } = await project.underLoad(async () => {
      const { code, output } = await project.deploy("second", "graceful");
      assert.equal(code, 0, output);
      assert.match(output, /app +drain .* the proxy has seen the new container/);
      assert.doesNotMatch(output, /app +switch/);
    });
    assert.deepEqual(versions, ["old", "second"]);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("if a healthy version answers badly, the old one is started again", async () => {
    assert.equal((await project.deploy("proved", "graceful")).code, 0);
    const { code, output } = await project.deploy("broken", "broken");
    assert.equal(code, 1, output);
    assert.match(output, /did not answer well through the proxy .*status 500/);
    assert.match(output, /app +roll back .* started again/);
    await until("the old version", async () => (await project.version().catch(() => "")) === "proved");
    assert.equal((await project.containers("app")).length, 1);
    assert.equal((await project.deploy("second", "graceful")).code, 0);
  });

  test("a version that never gets healthy gets no request", async () => {
    const { versions } = await project.underLoad(async () => {
      const { code, output } = await project.deploy("sick", "sick", { env: { HEALTHY_TIMEOUT: "4s" } });
      assert.equal(code, 1, output);
    });
    assert.deepEqual(versions, ["second"]);
    assert.equal((await project.containers("app")).length, 1);
  });

  test("behind a proxy that keeps its container, a bad version is found when the old one stops", async () => {
    await writeOverride(project, "live", { KEEPS: "1" });
    const options = { env: { DRAIN: "1s" } };
    assert.equal((await project.deploy("kept", "graceful", options)).code, 0);
    const { code, output } = await project.deploy("broken-too", "broken", options);
    assert.equal(code, 1, output);
    assert.match(output, /app +check .* answers well[\s\S]*app +stop [\s\S]*app +roll back .* started again/);
    await until("the old version", async () => (await project.version().catch(() => "")) === "kept");
    const names = (await project.containers("app")).map((line) => line.split(" ")[0]);
    assert.deepEqual(names, [await readLive(project)]);
  });
});

/** Replaces Caddy with the watching proxy; `label` says how the app is replaced. */
async function writeOverride(
  { directory, name, env }: TestProject,
  label: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<void> {
  const socket = (env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
  const caddy = {
    build: "watching-proxy",
    image: `${name}-watching-proxy`,
    environment: { SERVICE: "app", PROJECT: name, ...settings },
    volumes: [`${socket}:/var/run/docker.sock`],
  };
  const healthcheck = { interval: "1s", retries: 1 };
  const app = { labels: { "hotpush.rollout": label }, healthcheck };
  await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services: { app, caddy } }));
}
