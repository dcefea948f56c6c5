import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { type HostedStack, makeHostedStack } from "../lab/hosted-stack.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import type { Behaviour } from "../lab/project.ts";
import { underLoad } from "../lab/under-load.ts";

const example = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

/** Its deployments change the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh
set -e
sed -i "s/^TIMEOUT=.*/TIMEOUT=31m/" .env
hotpush rollout
`;

onOwnEngine("together", "Hotpush as a service of the stack that it deploys", (env, engine) => {
  let stack: HostedStack;
  let remote: GitRemote;
  /** The commits of the versions. */
  const commits = new Map<string, string>();

  before(async () => {
    await engine.joinSwarm();
    stack = await makeHostedStack(env, {
      script: example,
      variables: { TIMEOUT: "30m" },
      prepare: async (prepared) => {
        const bare = remotePath(prepared);
        await prepared.edit(
          /^ {6}SHUTDOWN_GRACE:/gm,
          `      DEPLOY_TIMEOUT: \${TIMEOUT}\n      SHUTDOWN_GRACE:`,
        );
        await prepared.edit("- hotpush:/var", `- ${bare}:${bare}\n      - hotpush:/var`);
        remote = await makeGitRemote(prepared);
      },
    });
  });
  after(async () => {
    await stack?.remove();
    await remote?.remove();
  });

  test("a push through Caddy goes live with no failed request and no new Hotpush", async () => {
    const before = await stack.instances();
    const { versions } = await underLoad(stack.origin, async () => {
      await push("second", "graceful");
      assert.equal(await stack.ending(1), "succeeded", await log());
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.deepEqual(await stack.instances(), before);
    await logged(/deploy +[\d.]+ m?s {2}stack \S+, without hotpush, which runs this$/m);
  });

  test("a version that Swarm rolls back is a failed deployment, with its reason", async () => {
    const { versions } = await underLoad(stack.origin, async () => {
      await push("broken-one", "crashes");
      assert.equal(await stack.ending(2), "failed", await log());
    });
    assert.deepEqual(versions, ["second"]);
    await logged(/version broken-one cannot start: no database named/);
  });

  test("roll back restores the previous version, and prune keeps what serves", async () => {
    await push("third", "graceful");
    assert.equal(await stack.ending(3), "succeeded", await log());
    const { versions } = await underLoad(stack.origin, async () => {
      const output = await hotpush("rollback");
      assert.match(output, /^Deployment 4 succeeded after .+\.$/m);
    });
    assert.deepEqual(versions, ["third", "second"]);
    await hotpush("prune", "--keep", "0");
    const kept = await stack.docker("images", `${stack.name}-app`, "--format", "{{.Tag}}");
    // Swarm itself still knows `third`: docker service rollback would bring it back.
    const expected = ["second", "third"].map((version) => commits.get(version)?.slice(0, 12));
    assert.deepEqual(kept.split("\n").sort(), ["latest", ...expected].sort());
  });

  for (const [who, roll] of [
    ["a deployment", pushOnce],
    ["a roll-out by hand in its container", async () => void (await hotpush("rollout"))],
  ] as const) {
    test(`${who} leaves Hotpush alone, though its part of the file has changed`, async () => {
      const before = await stack.instances();
      writeScript(join(stack.directory, "deploy.sh"), changing);
      await roll();
      assert.deepEqual(await stack.instances(), before);
      await logged(/stack \S+, without hotpush, which runs this/);
    });
  }

  async function push(version: string, behaviour: Behaviour): Promise<void> {
    const commit = await remote.push((clone) =>
      writeFile(join(clone, "app", "behaviour.json"), JSON.stringify({ version, behaviour })),
    );
    commits.set(version, commit);
  }

  async function pushOnce(): Promise<void> {
    await remote.push((clone) => writeFile(join(clone, "notes"), "for the developers"));
    assert.equal(await stack.ending(5), "succeeded", await log());
  }

  /** Runs a command in the serving container. */
  async function hotpush(...args: readonly string[]): Promise<string> {
    const [id = ""] = await stack.instances();
    return stack.docker("exec", id, "hotpush", ...args);
  }

  /** Docker stores log lines with a delay. */
  async function logged(expected: RegExp): Promise<void> {
    await until(`${expected} is logged`, async () => expected.test(await log()), 30_000);
  }

  async function log(): Promise<string> {
    const [id] = await stack.instances();
    if (id === undefined) return "";
    const lines = (await stack.docker("logs", id)).split("\n");
    const texts = lines.map((line) => (line.startsWith("{") ? String(JSON.parse(line).msg) : line));
    return texts.join("\n");
  }
});
