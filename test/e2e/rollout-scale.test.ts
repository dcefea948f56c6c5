import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
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
      const app = { labels: { "hotpush.rollout": "scale" } };
      await writeFile(join(directory, "compose.override.yaml"), JSON.stringify({ services: { app, caddy } }));
    });
  });
  after(() => project?.remove());

  test("a good version takes over with no request failed, and no live file is written", async () => {
    const { versions } = await project.underLoad(async () => {
      const { code, output } = await project.deploy("second", "graceful");
      assert.equal(code, 0, output);
      assert.match(output, /app +drain .* the proxy has seen the new container/);
      assert.doesNotMatch(output, /app +switch/);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.equal((await project.containers("app")).length, 1);
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
