import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { until } from "../harness/until.ts";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { makeStack, type TestStack } from "../lab/swarm.ts";

const run = promisify(execFile);

onOwnEngine("together", "a stack that docker stack deploy has started", (env, engine) => {
  let stack: TestStack;

  before(async () => {
    await engine.joinSwarm();
    stack = await makeStack(env);
    await stack.write("first", "graceful");
    await stack.docker("compose", "--file", "stack.yaml", "--project-name", stack.name, "build");
    const deploy = `docker stack deploy --detach=true --resolve-image=never --compose-file stack.yaml ${stack.name}`;
    const options = { env, cwd: stack.directory };
    await run("sh", ["-c", `set -a; . ./.env; exec ${deploy}`], options);
    await until("both tasks", async () => (await running()) === 2, 120_000);
  });
  after(() => stack?.remove());

  test("roll back restores the state before the first roll-out, no request fails", async () => {
    const unchanged = await stack.hotpush("rollout");
    assert.equal(unchanged.code, 0, unchanged.output);
    assert.match(unchanged.output, /note +what serves now is recorded as a good version, \d{12}: /);
    const { versions } = await underLoad(stack.origin, async () => {
      await stack.write("second", "graceful");
      for (const args of [["rollout"], ["prune"], ["rollout", "--back"]]) {
        const { code, output } = await stack.hotpush(...args);
        assert.equal(code, 0, output);
      }
    });
    assert.deepEqual(versions, ["first", "second"]);
    assert.match(await (await fetch(stack.origin)).text(), /^first /);
  });

  async function running(): Promise<number> {
    const filters = [
      "--filter",
      `label=com.docker.swarm.service.name=${stack.name}_app`,
      "--filter",
      "health=healthy",
    ];
    return (await stack.docker("ps", "--quiet", ...filters)).split("\n").filter(Boolean).length;
  }
});
