import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { recordedDeliveryCount, recordedDeployments } from "../harness/database.ts";
import { until } from "../harness/until.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { onEngine } from "../lab/on-engine.ts";
import { assertNoneLost, startPushes } from "../lab/pushes.ts";

const restarts = 3;
/** Git hosts give a delivery up after ten seconds. */
const hostPatienceMs = 10_000;
/** Time enough for some pushes to come: twenty come a second. */
const noticeableMs = 150;

onEngine("Hotpush is restarted behind the Caddy of examples/compose", (env) => {
  let project: HostedProject;

  before(async () => {
    project = await makeHosted(env, { script: "#!/bin/sh\nwhile [ -e linger ]; do sleep 0.1; done\n" });
  });
  after(() => project?.remove());

  test(`${restarts} times under 20 pushes a second, each push is answered with 202 and recorded`, async (t) => {
    const gapsMs: number[] = [];
    await underPushes(async () => {
      while (gapsMs.length < restarts) gapsMs.push(await restart());
    });
    t.diagnostic(`nobody listened for ${gapsMs.join(", ")} ms`);
  });

  test("while a deployment runs that does not end by itself, just as much", async (t) => {
    const linger = join(project.directory, "linger");
    await underPushes(async () => {
      writeFileSync(linger, "");
      await until("a deployment runs", () => recordedDeployments(project.statePath).some(isRunning));
      t.diagnostic(`nobody listened for ${await restart()} ms`);
      const [name = ""] = await project.instances();
      assert.ok((await timesOf(name, "deployment.interrupted")).length > 0, "it was cut off");
      rmSync(linger);
    });
  });

  /** Sends pushes from before `work` until after it: none may fail, and each has to be recorded. */
  async function underPushes(work: () => Promise<void>): Promise<void> {
    const pushes = startPushes(project.origin);
    const [worked] = await Promise.allSettled([work()]);
    const results = await pushes.stop();
    if (worked.status === "rejected") throw worked.reason;
    await assertNoneLost(results, project.statePath);
  }

  /** @returns for how long nobody listened */
  async function restart(): Promise<number> {
    await morePushes();
    const [name = ""] = await project.instances();
    const before = await timesOf(name, "service.started");
    await project.docker("restart", name);
    const started = await until("Hotpush listens again", async () => {
      const times = await timesOf(name, "service.started");
      return times.length > before.length && times.at(-1);
    });
    const stopping = (await timesOf(name, "service.stopping")).at(-1) ?? 0;
    const gapMs = started - stopping;
    assert.ok(gapMs > noticeableMs && gapMs < hostPatienceMs, `nobody listened for ${gapMs} ms`);
    await morePushes();
    return gapMs;
  }

  /** Waits for so many that those are among them that were held up while nobody listened. */
  async function morePushes(): Promise<void> {
    const known = recordedDeliveryCount(project.statePath);
    await until("more pushes are recorded", () => recordedDeliveryCount(project.statePath) >= known + 25);
  }

  /** When `event` was logged, in milliseconds, the latest last. */
  async function timesOf(name: string, event: string): Promise<readonly number[]> {
    const lines = (await project.docker("logs", name)).split("\n");
    const told = lines.filter((line) => line.includes(`"event":"${event}"`));
    return told.map((line) => Date.parse((JSON.parse(line) as { readonly time: string }).time));
  }
});

function isRunning({ state }: { readonly state: string }): boolean {
  return state === "running";
}
