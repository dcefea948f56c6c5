import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { deliver, githubPush } from "../harness/delivery.ts";
import { readDeployments, readRecorded, recordedDeliveryCount } from "../harness/records.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type HostedProject, makeHosted } from "../lab/hosted.ts";
import { assertNoneLost, startPushes } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";

const restarts = 3;
/** Git hosts give up a delivery after ten seconds. */
const hostPatienceMs = 10_000;

const lingering = "#!/bin/sh\nwhile [ -e linger ]; do sleep 0.1; done\n";

/** Changes the configuration of Hotpush itself, and nothing else. */
const changing = `#!/bin/sh
set -e
sed -i "s/^MARK=.*/MARK=$DEPLOY_ID/" .env
hotpush rollout
`;

/** Restarts Hotpush in the middle of its first attempt. */
const restarting = `#!/bin/sh
[ -e attempted ] || { touch attempted; docker restart "$(cat /etc/hostname)"; }
`;

onEngine("Hotpush as a service of the compose project that it deploys", (env) => {
  let project: HostedProject;

  before(async () => {
    const override = { labels: { mark: `\${MARK}` } };
    project = await makeHosted(env, { script: changing, override, variables: { MARK: "0" } });
  });
  after(() => project?.remove());

  test("a deployment leaves it alone, though its part of the compose file has changed", async () => {
    const before = await project.containers("hotpush");
    await assertSucceeds();
    assert.deepEqual(await project.containers("hotpush"), before);
  });

  test("a roll-out of it is refused, with the command that replaces it", async () => {
    const [name = ""] = await project.instances();
    const asked = project.docker("exec", name, "hotpush", "rollout", "hotpush");
    const stdout = /docker compose up --detach hotpush/;
    await assert.rejects(asked, { stdout });
    const [old] = await project.containers("hotpush");
    await project.docker("compose", "up", "--detach", "--wait", "hotpush");
    assert.notEqual((await project.containers("hotpush"))[0], old);
  });

  test("a deployment that restarts it runs again, and then succeeds", async () => {
    writeScript(join(project.directory, "deploy.sh"), restarting);
    const rows = await assertSucceeds();
    assert.equal(rows[0]?.attempts, 2);
  });

  test(`restarted ${restarts} times under 20 pushes a second, it answers each with 202 and records it`, async (t) => {
    writeScript(join(project.directory, "deploy.sh"), lingering);
    const slowestMs = await underPushes(async () => {
      for (let round = 1; round <= restarts; round += 1) await restart();
    });
    t.diagnostic(`the slowest push waited ${slowestMs} ms`);
  });

  test("the same while a deployment runs that does not end by itself", async (t) => {
    const linger = join(project.directory, "linger");
    const slowestMs = await underPushes(async () => {
      writeFileSync(linger, "");
      await until("a deployment runs", () =>
        readDeployments(project.statePath).some(({ state }) => state === "running"),
      );
      const [name = ""] = await project.instances();
      const before = await countEvents(name, "deployment.interrupted");
      await restart();
      assert.ok((await countEvents(name, "deployment.interrupted")) > before, "it was cut off");
      rmSync(linger);
    });
    t.diagnostic(`the slowest push waited ${slowestMs} ms`);
  });

  /** Pushes, and waits for the end. If the deployment does not succeed, the error has the log of the container. */
  async function assertSucceeds() {
    const { json } = await deliver(project.origin, githubPush());
    const id = json.deployment?.id ?? 0;
    const [name = ""] = await project.instances();
    assert.equal(await project.ending(id), "succeeded", await project.docker("logs", name));
    return readRecorded(project.statePath, ({ all }) =>
      all(`SELECT attempts FROM deployments WHERE id = ${id}`),
    );
  }

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
