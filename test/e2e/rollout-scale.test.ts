import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("behind a proxy that follows Docker's health itself, on a real engine", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env, async ({ directory, name, env: settings }) => {
      const socket = (settings.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
      const caddy = {
        build: "watching-proxy",
        image: `${name}-watching-proxy`,
        environment: { SERVICE: "app", PROJECT: name },
        volumes: [`${socket}:/var/run/docker.sock`],
      };
      const healthcheck = { interval: "1s", retries: 1 };
      const app = { labels: { "hotpush.rollout": "scale" }, healthcheck };
      await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services: { app, caddy } }));
    });
  });
  after(() => project?.remove());

  test("an app that goes on for some seconds after SIGTERM loses no request, and no live file is written", async () => {
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

  test("a version that is healthy but answers badly does not stay: the old one is started again", async () => {
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
});
