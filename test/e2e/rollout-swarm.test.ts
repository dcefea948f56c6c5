import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import type { Behaviour, Ending } from "../lab/project.ts";
import { makeStack, type TestStack } from "../lab/swarm.ts";

/** Ten take two minutes; two show that one can follow another. */
const rollouts = Number(process.env.HOTPUSH_E2E_SWARM_ROLLOUTS ?? 2);

onOwnEngine("one stack", "a stack on a real Swarm, under load through Caddy on task DNS", (env, engine) => {
  let stack: TestStack;
  let number = 0;
  /** The image name of a version. */
  const tags = new Map<string, string>();

  before(async () => {
    await engine.joinSwarm();
    stack = await makeStack(env);
    const { code, output } = await deploy("first", "graceful");
    assert.equal(code, 0, output);
    assert.match(output, /^ +app +started +app\.1\.\w+, app\.2\.\w+ \(first start\)/m);
  });
  after(() => stack?.remove());

  async function deploy(version: string, behaviour: Behaviour): Promise<Ending> {
    await stack.write(version, behaviour);
    number += 1;
    tags.set(version, commit(number).slice(0, 12));
    return stack.hotpush("rollout", "--commit", commit(number));
  }

  async function serving(version: string): Promise<void> {
    if ((await live()) === version) return;
    const { code, output } = await deploy(version, "graceful");
    assert.equal(code, 0, output);
  }

  async function live(): Promise<string> {
    return (await (await fetch(stack.origin)).text()).split(" ")[0] ?? "";
  }

  test(`${rollouts} good versions take over, no request fails, the rest is untouched`, async (t) => {
    const caddy = await stack.tasks("caddy");
    const { versions, answers } = await underLoad(stack.origin, async () => {
      for (let round = 1; round <= rollouts; round += 1) {
        const { code, output } = await deploy(`good-${round}`, "graceful");
        assert.equal(code, 0, output);
        assert.match(
          output,
          /^ +app +rolled +app\.1\.\w+, app\.2\.\w+ → app\.1\.\w+, app\.2\.\w+, healthy after/m,
        );
        assert.match(output, /^ +caddy +unchanged/m);
      }
    });
    t.diagnostic(`${answers.length} requests over ${rollouts} roll-outs, none failed`);
    assert.ok(versions.includes(`good-${rollouts}`));
    assert.deepEqual(await stack.tasks("caddy"), caddy);
  });

  test("the same sources under another commit leave the tasks alone", async () => {
    const tasks = await stack.tasks("app");
    const { code, output } = await deploy(await live(), "graceful");
    assert.equal(code, 0, output);
    assert.match(output, /^ +app +unchanged/m);
    assert.deepEqual(await stack.tasks("app"), tasks);
  });

  test("fails if Swarm rolls back a version that never gets healthy", async () => {
    await serving("known");
    const { versions } = await underLoad(stack.origin, async () => {
      const { code, output } = await deploy("sick", "sick");
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: The new version of app failed, and Swarm went back to the old one/);
      // On a busy machine the last health check may have come before the app listened.
      assert.match(output, /Last health check:\n +\S/, "the last health output is shown");
      assert.match(output, /version sick starts/, "the last log lines are shown");
    });
    assert.deepEqual(versions, ["known"]);
  });

  test("after a crash at start, the image name in the file is the serving version", async () => {
    await serving("known");
    const proved = await imageOf(stack, `${stack.name}-app`);
    const { versions } = await underLoad(stack.origin, async () => {
      const { code, output } = await deploy("crashing", "crashes");
      assert.equal(code, 1, output);
      assert.match(output, /Task app\.[12]\.\w+ failed: task: non-zero exit \(3\)/);
      assert.match(output, /version crashing cannot start: no database named "shop"/);
    });
    assert.deepEqual(versions, ["known"]);
    assert.equal(await imageOf(stack, `${stack.name}-app`), proved);
  });

  test("a version that answers badly through the proxy is rolled back", async () => {
    await serving("known");
    const { code, output } = await deploy("broken", "broken");
    assert.equal(code, 1, output);
    assert.match(output, /did not answer well through the proxy .* \(last: status 500\)/);
    assert.match(output, /app +roll back .* to the old version: done/);
    assert.equal(await live(), "known");
  });

  test("roll back restores the good version, and prune keeps what a roll back needs", async () => {
    for (const version of ["known", "older", "newest"]) await serving(version);
    const { versions } = await underLoad(stack.origin, async () => {
      const { code, output } = await stack.hotpush("rollout", "--back");
      assert.equal(code, 0, output);
      assert.doesNotMatch(output, /build/);
    });
    assert.deepEqual(versions, ["newest", "older"]);
    const { code, output } = await stack.hotpush("prune", "--keep", "1");
    assert.equal(code, 0, output);
    const kept = await stack.docker("images", `${stack.name}-app`, "--format", "{{.Tag}}");
    // Swarm itself still knows `newest`: docker service rollback would bring it back.
    const expected = ["known", "older", "newest"].map((version) => tags.get(version));
    assert.deepEqual(kept.split("\n").sort(), ["latest", ...expected].sort());
    assert.equal(await live(), "older");
  });

  test("a killed roll-out breaks nothing, and the next one lets Swarm finish first", async () => {
    await serving("known");
    await underLoad(stack.origin, async () => {
      // Slow, so that Swarm is still at it when the next one looks.
      await stack.write("half-way", "slow-start");
      const killed = stack.spawnHotpush("rollout", "--commit", commit(200));
      for await (const piece of killed.stdout ?? []) if (/ deploy +[\d.]+ /.test(String(piece))) break;
      killed.kill("SIGKILL");
      const { code, output } = await deploy("next", "graceful");
      assert.equal(code, 0, output);
      assert.match(output, /app +recover .* an update of an earlier roll-out: (?:rollback_)?completed/);
    });
    assert.equal(await live(), "next");
  });

  test("rolls back an update that takes too long, and shows the task's state", async () => {
    await serving("known");
    await stack.edit("hotpush.check:", "hotpush.healthy-timeout: 1s\n        hotpush.check:");
    // No node can take the tasks: Swarm would wait for ever.
    await stack.edit("order: start-first # The", "parallelism: 2\n        order: start-first # The");
    await stack.edit(
      "endpoint_mode: dnsrr",
      "endpoint_mode: dnsrr\n      placement: { constraints: [node.labels.nowhere == yes] }",
    );
    const { code, output } = await deploy("nowhere", "graceful");
    assert.equal(code, 1, output);
    assert.match(output, /The update of app was not done after/);
    assert.match(output, /no suitable node/);
    assert.equal(await live(), "known");
  });
});

function commit(number: number): string {
  return number.toString(16).padStart(12, "0").padEnd(40, "c");
}

function imageOf(stack: TestStack, name: string): Promise<string> {
  return stack.docker("image", "inspect", name, "--format", "{{.Id}}");
}
