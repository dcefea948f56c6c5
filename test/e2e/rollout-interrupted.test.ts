import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, outputOf, untilPrinted } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

/** How often the roll-out is killed, spread over all steps. */
const kills = Number(process.env.HOTPUSH_E2E_KILLS ?? 3);

/** With its child processes, as at a power cut; or alone, while compose continues. */
function kill({ pid = 0 }: ChildProcess, { withCompose }: { readonly withCompose: boolean }): void {
  const children = withCompose ? childrenOf(pid) : [];
  killIfThere(pid);
  // Compose has a process group of its own; other children end quickly.
  for (const child of children) killIfThere(-child);
}

function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  return existsSync(path) ? readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number) : [];
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

onEngine("a roll-out that is cut short on a real engine, under load", (env) => {
  let project: RolledProject;

  before(async () => {
    project = await makeRolledProject(env);
  });
  after(() => project?.remove());

  test("asked to stop before the switch, a roll-out removes what it started", async () => {
    const containers = await project.containers("app");
    await project.write("stopped", "sick");
    await project.underLoad(async () => {
      const stopped = project.spawnRollout();
      const { code, output } = await untilPrinted(stopped, /app +start /, async () => {
        stopped.kill("SIGTERM");
      });
      assert.equal(code, 1, output);
      assert.match(output, /FAILED: The roll-out was asked to stop/);
    });
    assert.deepEqual(await project.containers("app"), containers);
  });

  test("if Caddy stops during a roll-out, the old version stays, and serves when Caddy is back", async () => {
    const containers = await project.containers("app");
    await project.write("unseen", "slow-start");
    const rollout = project.spawnRollout({ env: { DRAIN: "2s" } });
    const output = await outputOf(
      untilPrinted(rollout, /app +start /, () => project.docker("kill", `${project.name}-caddy-1`)),
      1,
    );
    assert.match(output, /did not answer well through the proxy/);
    assert.match(output, /Caddy did not answer on admin\.sock in the live directory: waited 2 s instead/);
    assert.deepEqual(await project.containers("app"), containers);
    await project.docker("compose", "start", "caddy");
    await until("the old version", async () => (await project.version().catch(() => "")) === "first");
  });

  test("killed between its switch and its check, a version that answers badly does not stay", async () => {
    await project.serving("proved");
    await project.write("unproved", "broken");
    const killed = project.spawnRollout();
    await untilPrinted(killed, /app +switch /, async () => kill(killed, { withCompose: false }));
    const output = await outputOf(project.rollOut(), 1);
    assert.match(output, /An earlier roll-out had no time to see that: the old version serves again/);
    assert.match(output, /app +roll back|did not answer well through the proxy/);
    assert.equal(await project.version(), "proved");
  });

  test("killed at any moment, the app keeps serving and the next roll-out recovers", {
    timeout: 60_000 + kills * 30_000,
  }, async () => {
    await project.underLoad(async () => {
      const startedMs = performance.now();
      assert.equal((await project.deploy("whole", "graceful")).code, 0);
      const wholeMs = performance.now() - startedMs;
      for (let round = 1; round <= kills; round += 1) {
        await project.write(`killed-${round}`, "graceful");
        const killed = project.spawnRollout();
        const ending = endOf(killed);
        // Spread over the whole roll-out.
        await Promise.race([sleep((wholeMs * (round - 0.5)) / kills), once(killed, "close")]);
        kill(killed, { withCompose: round % 2 === 0 });
        await ending;
        const output = await outputOf(project.deploy(`healed-${round}`, "graceful"));
        const containers = await project.containers("app");
        assert.equal(containers.length, 1, `after round ${round}: ${containers.join(", ")}\n${output}`);
        assert.equal(await project.version(), `healed-${round}`);
      }
    });
  });
});
