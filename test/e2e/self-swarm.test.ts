import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { testSecret } from "../harness/delivery.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { buildImage, endingIn, messagesIn, removeImage } from "../lab/project.ts";
import { makeStack, type TestStack } from "../lab/swarm.ts";

const example = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

/** Its deployments change the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh
set -e
sed -i "s/^TIMEOUT=.*/TIMEOUT=31m/" .env
hotpush rollout
`;

onOwnEngine("one stack", "Hotpush as a service of the stack that it deploys", (env, engine) => {
  let stack: HostedStack;
  let remote: GitRemote;

  before(async () => {
    await engine.joinSwarm();
    stack = await makeHostedStack(env, async (prepared) => {
      const bare = remotePath(prepared);
      await prepared.edit(
        /^ {6}SHUTDOWN_GRACE:/gm,
        `      DEPLOY_TIMEOUT: \${TIMEOUT}\n      SHUTDOWN_GRACE:`,
      );
      await prepared.edit("- hotpush:/var", `- ${bare}:${bare}\n      - hotpush:/var`);
      remote = await makeGitRemote(prepared);
    });
  });
  after(async () => {
    await stack?.remove();
    await remote?.remove();
  });

  test("a push through Caddy goes live, and rollback goes back, with no failed request and no new Hotpush", async () => {
    const before = await stack.instances();
    const { versions } = await underLoad(stack.origin, async () => {
      const second = JSON.stringify({ version: "second", behaviour: "graceful" });
      await remote.push((clone) => writeFile(join(clone, "app", "behaviour.json"), second));
      assert.equal(await stack.ending(1), "succeeded", await log());
      assert.match(await hotpush("rollback"), /^Deployment 2 succeeded after .+\.$/m);
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.match(await (await fetch(stack.origin)).text(), /^first /);
    assert.deepEqual(await stack.instances(), before);
    await logged(/deploy +[\d.]+ m?s {2}stack \S+, without hotpush, which runs this/);
  });

  test("a deployment leaves Hotpush alone, though its part of the file has changed", async () => {
    const before = await stack.instances();
    writeScript(join(stack.directory, "deploy.sh"), changing);
    await remote.push((clone) => writeFile(join(clone, "notes"), "for the developers"));
    assert.equal(await stack.ending(3), "succeeded", await log());
    assert.deepEqual(await stack.instances(), before);
    await logged(/stack \S+, without hotpush, which runs this/);
  });

  /** Runs a command in the serving container. */
  async function hotpush(...args: readonly string[]): Promise<string> {
    const [id = ""] = await stack.instances();
    return stack.docker("exec", id, "hotpush", ...args);
  }

  /** Docker stores log lines with a delay. */
  async function logged(expected: RegExp): Promise<void> {
    await until(`${expected} is logged`, async () => expected.test(await log()));
  }

  async function log(): Promise<string> {
    const [id] = await stack.instances();
    if (id === undefined) return "";
    return messagesIn(await stack.docker("logs", id));
  }
});

/** The stack of examples/swarm with Hotpush in it, from its real image. */
type HostedStack = Awaited<ReturnType<typeof makeHostedStack>>;

/** Starts the stack using only Docker and Hotpush's image; `prepare` is called when the files are written, and nothing runs. */
async function makeHostedStack(labEnv: NodeJS.ProcessEnv, prepare: (stack: TestStack) => Promise<void>) {
  const stack = await makeStack(labEnv, { withHotpush: true });
  const { name, directory, docker } = stack;
  const image = `hotpush-e2e:${name}`;
  const socket = (labEnv.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
  const remove = async () => {
    await stack.remove();
    await removeImage(labEnv, image);
  };
  try {
    await buildImage(labEnv, image);
    const settings = {
      REPO_PATH: directory,
      WEBHOOK_SECRET: testSecret,
      CHECK_URL: "http://tasks.caddy/",
      HOTPUSH_IMAGE: image,
      DOCKER_SOCKET: socket,
      TIMEOUT: "30m",
    };
    const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}\n`);
    await appendFile(join(directory, ".env"), lines.join(""));
    await stack.write("first", "graceful");
    writeScript(join(directory, "deploy.sh"), example);
    await prepare(stack);
    await rollOutFirst(stack, image, socket);
    const statePath = await docker("volume", "inspect", `${name}_hotpush`, "--format", "{{.Mountpoint}}");
    const ofHotpush = `label=com.docker.swarm.service.name=${name}_hotpush`;
    return {
      ...stack,
      remove,
      /** The ids of Hotpush's running containers. */
      instances: async () =>
        (await docker("ps", "--quiet", "--no-trunc", "--filter", ofHotpush)).split("\n").filter(Boolean),
      ending: endingIn(statePath),
    };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function rollOutFirst(
  { name, directory, docker }: TestStack,
  image: string,
  socket: string,
): Promise<void> {
  // The state is the service's own, so the first version can be restored too.
  const state = `${name}_hotpush:/var/lib/hotpush`;
  const mounts = [`${socket}:/var/run/docker.sock`, `${directory}:${directory}`, state];
  await docker(
    "run",
    "--rm",
    ...mounts.flatMap((mount) => ["--volume", mount]),
    // Names of services do not resolve outside of the stack's network.
    "--env",
    "CHECK_URL=",
    "--workdir",
    directory,
    image,
    "rollout",
  );
}
