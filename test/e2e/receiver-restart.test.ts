import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readDeployments, recordedDeliveryCount } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { assertNoneLost, startPushes } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";

const restarts = 3;
/** Git hosts give up a delivery after ten seconds. */
const hostPatienceMs = 10_000;

onEngine("Hotpush is restarted behind the Caddy of examples/compose", (env) => {
  let project: HostedProject;

  before(async () => {
    project = await makeHosted(env, { script: "#!/bin/sh\nwhile [ -e linger ]; do sleep 0.1; done\n" });
  });
  after(() => project?.remove());

  test(`${restarts} times under 20 pushes a second, each push is answered with 202 and recorded`, async (t) => {
    const slowestMs = await underPushes(async () => {
      for (let round = 1; round <= restarts; round += 1) await restart();
    });
    t.diagnostic(`the slowest push waited ${slowestMs} ms`);
  });

  test("the same while a deployment runs that does not end by itself", async (t) => {
    const linger = join(project.directory, "linger");
    const slowestMs = await underPushes(async () => {
      writeFileSync(linger, "");
      await until("a deployment runs", () => readDeployments(project.statePath).some(isRunning));
      await restart();
      const [name = ""] = await project.instances();
      assert.ok((await countEvents(name, "deployment.interrupted")) > 0, "it was cut off");
      rmSync(linger);
    });
    t.diagnostic(`the slowest push waited ${slowestMs} ms`);
  });

  /**
   * Sends pushes from before `work` until after it: none may fail, and each must be recorded.
   *
   * @returns the longest wait for an answer
   */
  async function underPushes(work: () => Promise<void>): Promise<number> {
    const pushes = startPushes(project.origin);
    const [worked] = await Promise.allSettled([work()]);
    const results = await pushes.stop();
    if (worked.status === "rejected") throw worked.reason;
    await assertNoneLost(results, project.statePath);
    const slowestMs = Math.max(...results.map(({ tookMs }) => tookMs));
    assert.ok(slowestMs < hostPatienceMs, `a push waited ${slowestMs} ms`);
    return slowestMs;
  }

  async function restart(): Promise<void> {
    await morePushes();
    const [name = ""] = await project.instances();
    const before = await countEvents(name, "service.started");
    await project.docker("restart", name);
    await until("Hotpush listens again", async () => (await countEvents(name, "service.started")) > before);
    await morePushes();
  }

  /** Waits for enough answers to include those that were delayed while nothing listened. */
  async function morePushes(): Promise<void> {
    const known = recordedDeliveryCount(project.statePath);
    await until("more pushes are recorded", () => recordedDeliveryCount(project.statePath) >= known + 25);
  }

  async function countEvents(name: string, event: string): Promise<number> {
    return (await project.docker("logs", name)).split(`"event":"${event}"`).length - 1;
  }
});

function isRunning({ state }: { readonly state: string }): boolean {
  return state === "running";
}
