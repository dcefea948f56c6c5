import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { freePort } from "../harness/listen.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type GitRemote, makeGitRemote, remotePath } from "../lab/git-remote.ts";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import {
  type Behaviour,
  buildImage,
  endingIn,
  messagesIn,
  outputOf,
  removeImage,
  versionAt,
  writeVersion,
} from "../lab/project.ts";
import { makeStack, type TestStack } from "../lab/swarm.ts";

/** Ten take two minutes; two show that one can follow another. */
const rollouts = Number(process.env.HOTPUSH_E2E_SWARM_ROLLOUTS ?? 2);
const image = `hotpush-e2e-swarm-${process.pid}`;
const example = await readFile(join(import.meta.dirname, "../../examples/deploy.sh"), "utf8");

/** Changes the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh\nset -e\nsed -i "s/^TIMEOUT=.*/TIMEOUT=31m/" .env\nhotpush rollout\n`;

onOwnEngine("together", "a stack on a real Swarm, under load through Caddy on task DNS", (env, engine) => {
  let stack: TestStack;
  let remote: GitRemote;
  let number = 0;
  /** The tag of each version. */
  const tags = new Map<string, string>();

  before(async () => {
    await engine.joinSwarm();
    await buildImage(env, image);
    stack = await makeStack(env, `http://127.0.0.1:${await freePort()}`, image);
    const bare = remotePath(stack);
    await stack.edit("- hotpush:/var", `- ${bare}:${bare}\n      - hotpush:/var`);
    await stack.edit(/^( +)SHUTDOWN_GRACE:/gm, `$1DEPLOY_TIMEOUT: \${TIMEOUT}\n$1SHUTDOWN_GRACE:`);
    writeScript(join(stack.directory, "deploy.sh"), example);
    await stack.write("first", "graceful");
    remote = await makeGitRemote(stack);
    assert.match(await deploy("first"), /^ +app +started +app\.1\.\w+, app\.2\.\w+ \(first start\)/m);
  });
  after(async () => {
    await stack?.remove();
    await remote?.remove();
    await removeImage(env, image);
  });

  /** Rolls out a version. @returns the output */
  async function deploy(version: string, behaviour: Behaviour = "graceful", code = 0): Promise<string> {
    await stack.write(version, behaviour);
    number += 1;
    tags.set(version, commit(number).slice(0, 12));
    const ending = await stack.hotpush("rollout", "--commit", commit(number));
    assert.equal(ending.code, code, ending.output);
    return ending.output;
  }

  async function serving(version: string): Promise<void> {
    if ((await live()) !== version) await deploy(version);
  }

  function live(): Promise<string> {
    return versionAt(stack.origin);
  }

  test(`${rollouts} good versions take over, no request fails, the rest is untouched`, async (t) => {
    const others = async () => [await stack.tasks("caddy"), await stack.tasks("hotpush")];
    const before = await others();
    const { versions, answers } = await underLoad(stack.origin, async () => {
      for (let round = 1; round <= rollouts; round += 1) {
        const output = await deploy(`good-${round}`);
        const rolled = /^ +app +rolled +app\.1\.\w+, app\.2\.\w+ → app\.1\.\w+, app\.2\.\w+, healthy after/m;
        assert.match(output, rolled);
        assert.match(output, /^ +caddy +unchanged/m);
      }
    });
    t.diagnostic(`${answers.length} requests over ${rollouts} roll-outs, none failed`);
    assert.ok(versions.includes(`good-${rollouts}`));
    assert.deepEqual(await others(), before);
  });

  test("the same sources under another commit leave the tasks alone", async () => {
    const tasks = await stack.tasks("app");
    assert.match(await deploy(await live()), /^ +app +unchanged/m);
    assert.deepEqual(await stack.tasks("app"), tasks);
  });

  test("a version that never gets healthy, or crashes at its start, fails, and the old one serves", async () => {
    await serving("known");
    const name = `${stack.name}-app`;
    const imageNow = () => stack.docker("image", "inspect", name, "--format", "{{.Id}}");
    const proved = await imageNow();
    const { versions } = await underLoad(stack.origin, async () => {
      const sick = await deploy("sick", "sick", 1);
      assert.match(sick, /FAILED: The new version of app failed, and Swarm went back to the old one/);
      // On a busy machine the last health check may have come before the app listened.
      assert.match(sick, /Last health check:\n +\S/);
      assert.match(sick, /version sick starts/, "the last log lines are shown");
      const crashing = await deploy("crashing", "crashes", 1);
      assert.match(crashing, /Task app\.[12]\.\w+ failed: task: non-zero exit \(3\)/);
      assert.match(crashing, /version crashing cannot start: no database named "shop"/);
    });
    assert.deepEqual(versions, ["known"]);
    assert.equal(await imageNow(), proved, "the name in the file is that of the version that serves");
  });

  test("a version that answers badly through the proxy is rolled back", async () => {
    await serving("known");
    const output = await deploy("broken", "broken", 1);
    assert.match(output, /did not answer well through the proxy .* \(last: status 500\)/);
    assert.match(output, /app +roll back .* to the old version: done/);
    assert.equal(await live(), "known");
  });

  test("roll back restores the good version, and prune keeps what a roll back needs", async () => {
    for (const version of ["known", "older", "newest"]) await serving(version);
    const { versions } = await underLoad(stack.origin, async () => {
      const output = await outputOf(stack.hotpush("rollout", "--back"));
      assert.doesNotMatch(output, /build/);
    });
    assert.deepEqual(versions, ["newest", "older"]);
    await outputOf(stack.hotpush("prune", "--keep", "1"));
    const kept = (await stack.docker("images", `${stack.name}-app`, "--format", "{{.Tag}}")).split("\n");
    // Swarm itself still knows `newest`: docker service rollback would bring it back.
    const needed = ["latest", ...["known", "older", "newest"].map((version) => tags.get(version) ?? "")];
    assert.deepEqual(
      needed.filter((tag) => !kept.includes(tag)),
      [],
    );
    assert.ok(!kept.includes(tags.get("first") ?? ""), "no task of the first version is left");
    assert.equal(await live(), "older");
  });

  test("a killed roll-out breaks nothing, and the next one lets Swarm finish first", async () => {
    await underLoad(stack.origin, async () => {
      // Slow, so that Swarm is still at it when the next one looks.
      await stack.write("half-way", "slow-start");
      const killed = stack.spawnHotpush("rollout", "--commit", commit(200));
      for await (const piece of killed.stdout ?? []) if (/ deploy +[\d.]+ /.test(String(piece))) break;
      killed.kill("SIGKILL");
      const output = await deploy("next");
      assert.match(output, /app +recover .* an update of an earlier roll-out: (?:rollback_)?completed/);
    });
    assert.equal(await live(), "next");
  });

  test("a push to the Hotpush in it goes live, and one that changes Hotpush replaces it meanwhile", async () => {
    await serving("next");
    // Names of services do not resolve outside of the stack's network.
    await appendFile(join(stack.directory, ".env"), "CHECK_URL=http://tasks.caddy/\n");
    const volume = ["volume", "inspect", `${stack.name}_hotpush`, "--format", "{{.Mountpoint}}"];
    const ending = endingIn(await stack.docker(...volume));
    const [first = ""] = await instances();
    const { versions } = await underLoad(stack.origin, async () => {
      await remote.push((clone) => writeVersion(clone, "pushed", "graceful"));
      assert.equal(await ending(1), "succeeded", await log());
      assert.deepEqual(await instances(), [first]);
      writeScript(join(stack.directory, "deploy.sh"), changing);
      await remote.push((clone) => writeFile(join(clone, "notes"), "for the developers"));
      assert.equal(await ending(2), "succeeded", await log());
    });
    assert.deepEqual(versions, ["next", "pushed"]);
    await until("only the new Hotpush", async () => {
      const [id, ...more] = await instances();
      return more.length === 0 && id !== undefined && id !== first;
    });

    async function log(): Promise<string> {
      return messagesIn(await stack.docker("logs", first));
    }
  });

  /** The ids of Hotpush's running containers. */
  async function instances(): Promise<readonly string[]> {
    const own = `label=com.docker.swarm.service.name=${stack.name}_hotpush`;
    return (await stack.docker("ps", "--quiet", "--no-trunc", "--filter", own)).split("\n").filter(Boolean);
  }
});

function commit(number: number): string {
  return number.toString(16).padStart(12, "0").padEnd(40, "c");
}
