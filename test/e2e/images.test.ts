import assert from "node:assert/strict";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isFinished } from "../../src/deployments/deployment.ts";
import { startPage } from "../harness/page.ts";
import { readDeployments, readLog, untilDeployment } from "../harness/records.ts";
import { type RunningService, startService } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote } from "../lab/git-remote.ts";
import { underLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  type Behaviour,
  type Docker,
  dockerIn,
  endOf,
  makeProject,
  outputOf,
  spawnHotpush,
  versionAt,
  writeVersion,
} from "../lab/project.ts";
import { type Registry, startRegistry } from "../lab/registry.ts";

const script = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");
const user = { Username: "ci", Secret: "a password" };

onEngine("images that CI builds, from a private registry, on a real engine", (env) => {
  let project: Awaited<ReturnType<typeof makeProject>>;
  let remote: GitRemote;
  let registry: Registry;
  let service: RunningService;
  let deployHead: () => Promise<number>;
  /** Docker as CI runs it, with a login. */
  let ci: Docker;
  /** The directory of a configuration of Docker. */
  const configOf = (who: "ci" | "owner") => join(project.directory, "state", who);
  const ends: (() => unknown)[] = [];

  before(async () => {
    registry = await startRegistry("127.0.0.1", `${user.Username}:${user.Secret}`);
    project = await makeProject(env);
    const { directory, name } = project;
    for (const who of ["ci", "owner"] as const)
      await cp(env.DOCKER_CONFIG ?? "", configOf(who), { recursive: true });
    const bin = join(directory, "state", "bin");
    await mkdir(bin);
    writeScript(join(bin, "docker-credential-lab"), `#!/bin/sh\necho '${JSON.stringify(user)}'\n`);
    const PATH = `${bin}:${project.env.PATH}`;
    ci = dockerIn(directory, { ...project.env, PATH, DOCKER_CONFIG: configOf("ci") });
    await logIn("ci");
    const model = await readFile(join(directory, "compose.yaml"), "utf8");
    const pulled = model.replace(
      "build: app",
      `image: ${registry.host}/team/app:main\n    pull_policy: always`,
    );
    await writeFile(join(directory, "compose.yaml"), pulled.replace(/^ {2}other:\n(?:.+\n)+/m, ""));
    writeScript(join(directory, "deploy.sh"), script);
    // Nobody is there, so pushes are found by catch-up.
    remote = await makeGitRemote({ directory, origin: "http://127.0.0.1:9" });
    service = await startService(
      { after: (work) => void ends.unshift(work) },
      {
        repoPath: directory,
        env: {
          PATH,
          DOCKER_HOST: env.DOCKER_HOST ?? "",
          DOCKER_CONFIG: configOf("owner"),
          COMPOSE_PROJECT_NAME: name,
          PORT: project.env.PORT ?? "",
          DEPLOY_ENV: "PORT",
          DEPLOY_IMAGES: "watch",
          CATCH_UP_INTERVAL: "1s",
        },
      },
    );
    const page = await startPage({ after: (work) => void ends.unshift(work) }, service);
    deployHead = async () => {
      const { json } = await page.ask("POST /api/projects/_/deployments");
      return (json.deployment as { readonly id: number }).id;
    };
  });
  after(async () => {
    for (const end of ends) await end();
    await project?.remove();
    await remote?.remove();
    registry?.close();
  });

  test("without a login it fails with the image and the fix; with a credential helper it serves", async () => {
    await push("one");
    assert.equal(await ending(await deployHead()), "failed");
    assert.match(
      readLog(service.statePath, 1),
      /FAILED: .*which image it has: .*team\/app:main.* docker login/,
    );
    await logIn("owner");
    assert.equal(await ending(await deployHead()), "succeeded");
    assert.equal(await version(), "one");
  });

  test("what CI pushes is live without a failed request, and rolled back it stays back", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await push("two");
      assert.equal(await ending(3), "succeeded");
      const child = spawnHotpush(project.directory, { ...project.env, STATE_PATH: service.statePath }, [
        "rollback",
      ]);
      await outputOf(endOf(child));
    });
    assert.deepEqual(versions, ["one", "two"]);
    assert.equal(await version(), "one");
    await lookAgain();
    await remote.push((clone) => writeFile(join(clone, "notes"), "A commit that changes no image.\n"));
    assert.equal(await ending(5), "succeeded");
    assert.equal(await version(), "one");
    await push("three");
    assert.equal(await ending(6), "succeeded");
    assert.equal(await version(), "three");
    assert.deepEqual(
      readDeployments(service.statePath).map(({ trigger }) => trigger),
      ["manual", "manual", "image", "rollback", "catch-up", "image"],
    );
  });

  test("an image that crashes never serves, and is not tried again", async () => {
    const { versions } = await underLoad(project.origin, async () => {
      await push("broken", "crashes");
      assert.equal(await ending(7), "failed");
      await lookAgain();
    });
    assert.deepEqual(versions, ["three"]);
    assert.equal(readDeployments(service.statePath).length, 7);
  });

  test("a tag that moves while its image is pulled changes nothing in that roll-out", async () => {
    await push("four", "graceful", "next");
    await push("five", "graceful", "last");
    // The engine reads an image's configuration at the look, when the roll-out asks, and when it pulls.
    let reads = 0;
    registry.onRead(() => {
      reads += 1;
      if (reads === 3) registry.tag("team/app:last", "team/app:main");
    });
    const { versions } = await underLoad(project.origin, async () => {
      registry.tag("team/app:next", "team/app:main");
      assert.equal(await ending(8), "succeeded");
      assert.equal(await ending(9), "succeeded");
    });
    registry.onRead(() => {});
    assert.deepEqual(versions, ["three", "four", "five"]);
  });

  for (const manner of ["fails", "lies"] as const)
    test(`from a registry that ${manner} nothing is deployed, and the old version serves`, async () => {
      registry.behave(manner);
      const id = await deployHead();
      assert.equal(await ending(id), "failed");
      assert.match(readLog(service.statePath, id), /FAILED: .*team\/app/);
      registry.behave("well");
      assert.equal(await version(), "five");
    });

  /** Builds a version of the app, and pushes it as CI would from another machine. */
  async function push(version: string, behaviour: Behaviour = "graceful", tag = "main"): Promise<void> {
    const directory = join(project.directory, "other", "app");
    await cp(join(project.directory, "app"), directory, { recursive: true });
    await writeVersion(join(project.directory, "other"), version, behaviour);
    const image = `${registry.host.replace("127.0.0.1", "localhost")}/team/app:${tag}`;
    const label = `com.docker.compose.project=${project.name}`;
    // In a list of images, as one with provenance is, the engine does not read the configuration when it looks.
    const provenance = tag === "main" ? [] : ["--provenance=false"];
    await ci("build", "--quiet", ...provenance, "--label", label, "--tag", image, directory);
    await ci("push", "--quiet", image);
    await ci("rmi", image);
  }

  async function logIn(who: "ci" | "owner"): Promise<void> {
    const path = join(configOf(who), "config.json");
    const hosts = [registry.host, registry.host.replace("127.0.0.1", "localhost")];
    const credHelpers = Object.fromEntries(hosts.map((host) => [host, "lab"]));
    await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, "utf8")), credHelpers }));
  }

  /** Waits until the registry was asked several times more. */
  async function lookAgain(): Promise<void> {
    const asked = registry.asked();
    await until("the registry was asked again", () => registry.asked() > asked + 4);
  }

  async function ending(id: number): Promise<string> {
    const { state } = await untilDeployment(service.statePath, id, (one) => isFinished(one.state));
    return state;
  }

  function version(): Promise<string> {
    return versionAt(project.origin);
  }
});
