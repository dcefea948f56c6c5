import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { onEngine } from "../lab/on-engine.ts";
import { buildImage, messagesIn, removeImage } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

onEngine("a roll-out from inside a container", (env) => {
  let project: RolledProject;
  let image: string;

  before(async () => {
    project = await makeRolledProject(env);
    image = `hotpush-e2e:${project.name}`;
    await buildImage(project.env, image);
  });
  after(async () => {
    await project?.remove();
    await removeImage(env, image);
  });

  /** Runs a command in a container that sees the repository at `path`. */
  function inside(path: string, more: readonly string[], ...args: readonly string[]): Promise<string> {
    return run(path, ["--volume", `${project.name}_live:/run/live`, ...more], args);
  }

  function run(path: string, more: readonly string[], args: readonly string[]): Promise<string> {
    const socket = (project.env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
    const mounts = [`${project.directory}:${path}`, `${socket}:/var/run/docker.sock`];
    const env = [`REPO_PATH=${path}`, `PORT=${project.env.PORT}`, `COMPOSE_PROJECT_NAME=${project.name}`];
    const flags = [
      ...mounts.flatMap((mount) => ["--volume", mount]),
      ...env.flatMap((pair) => ["--env", pair]),
    ];
    const minFree = ["--env", "HOTPUSH_MIN_FREE=1 MiB", "--network", "host"];
    return project
      .docker("run", "--rm", ...flags, ...minFree, ...more, image, ...args)
      .catch((error: { readonly stdout: string; readonly stderr: string }) => error.stdout + error.stderr)
      .then(messagesIn);
  }

  test("with the repository at another path, bind mounts are unchanged, the app is rolled", async () => {
    await project.write("inside", "graceful");
    const output = await inside("/app", [], "rollout");
    assert.match(output, /^ +app +rolled +\S+ → \S+, .*drained in [\d.]+ m?s$/m, output);
    assert.match(output, /^ +caddy +unchanged/m, output);
    assert.match(output, /live files in \/run\/live/);
  });

  test("the project's name and files are those that its container was started with", async (t) => {
    const prod = `${project.name}-prod`;
    const socket = (project.env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
    const self = {
      image,
      entrypoint: ["sleep", "infinity"],
      init: true,
      environment: {
        REPO_PATH: project.directory,
        HOTPUSH_MIN_FREE: "1 MiB",
        STATE_PATH: project.env.STATE_PATH,
      },
      volumes: [`${project.directory}:${project.directory}`, `${socket}:/var/run/docker.sock`],
      tmpfs: ["/var/lib/hotpush"],
    };
    const worker = { build: "app", labels: { "hotpush.rollout": "recreate" } };
    const services = JSON.stringify({ services: { "a-self": self, worker } });
    await writeFile(join(project.directory, "prod.yaml"), services);
    const compose = ["compose", "--project-name", prod, "--file", "prod.yaml"];
    t.after(() => project.docker(...compose, "down", "--timeout", "1", "--rmi", "local"));
    await project.docker(...compose, "up", "--detach", "--build");
    await project.write("prod", "graceful");
    const output = messagesIn(await project.docker("exec", `${prod}-a-self-1`, "hotpush", "rollout"));
    assert.match(output, /without a-self, which runs this/);
    assert.match(output, new RegExp(`^Rolling out ${prod} at \\w+: worker$`, "m"), output);
    assert.match(output, new RegExp(`^ +worker .* → ${prod}-worker-1,`, "m"), output);
  });

  test("what is mounted wrong is an error with the line to change, and nothing changes", async () => {
    const before = await project.containers("app");
    await project.write("unmounted", "graceful");
    const noLive = await run(project.directory, [], ["rollout"]);
    assert.match(noLive, /mount the volume at \/run\/live in Hotpush's own service/);
    const noLink = await inside("/app", ["--read-only", "--tmpfs", "/root"], "rollout");
    assert.match(noLink, new RegExp(`write "${project.directory}:${project.directory}", and set REPO_PATH`));
    const notOfHost = await inside("/app", [], "rollout", "--directory", "/usr/local/lib/hotpush");
    assert.match(notOfHost, /\/usr\/local\/lib\/hotpush is not mounted from the host/);
    assert.deepEqual(await project.containers("app"), before);
  });
});
