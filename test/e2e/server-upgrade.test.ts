import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { recordedDeliveryCount, recordedDeployments } from "../harness/database.ts";
import { until } from "../harness/until.ts";
import { buildImage, removeImage } from "../lab/image.ts";
import { startLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { untilPrinted } from "../lab/project.ts";
import { startPushes } from "../lab/pushes.ts";
import { type LabServer, makeLabServer } from "../lab/server.ts";
import { spawnHotpush } from "../lab/spawn-hotpush.ts";

/** Git hosts give up a delivery after ten seconds. */
const hostPatienceMs = 10_000;
const [base, old, own] = ["hotpush-e2e-upgrade:base", "hotpush:e2e-old", "hotpush-e2e-upgrade:own"] as const;
const script = "#!/bin/sh\nuntil [ ! -e wait ]; do sleep 0.1; done\n";

onOwnEngine("one server", "hotpush upgrade replaces the server's Hotpush", (env) => {
  let server: LabServer;

  before(async () => {
    await buildImage(env, base);
    await buildOn(env, base, old, "LABEL version=old");
    server = await makeLabServer(env, old, script);
  });
  after(async () => {
    await server?.remove();
    for (const image of [old, own, base]) await removeImage(env, image);
  });

  test("under load and 20 pushes a second, no push is lost and no request fails", async (t) => {
    const load = startLoad(server.origin, 300);
    const pushes = startPushes(server.origin);
    await until("answers", () => load.answers.length > 30);
    const { code, output } = await server.hotpush("upgrade", "--yes");
    const soFar = load.answers.length;
    await until("answers after it", () => load.answers.length > soFar + 60);
    const results = await pushes.stop();
    const { answers, failures } = await load.stop();
    assert.equal(code, 0, output);
    assert.match(output, /Replaced front in .+\nReplaced run in .+\nThis server runs hotpush:\d/);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${answers.length} requests failed`);
    assert.deepEqual(results.filter(({ status }) => status !== 202).slice(0, 3), []);
    await until("run has all pushes", () => recordedDeliveryCount(server.runStatePath) === results.length);
    const slowestMs = Math.max(...results.map(({ tookMs }) => tookMs));
    assert.ok(slowestMs < hostPatienceMs, `a push waited ${slowestMs} ms`);
    t.diagnostic(`${results.length} pushes, the slowest took ${slowestMs} ms; ${answers.length} requests`);
    assert.match(
      (await server.containers()).join("\n"),
      /-caddy-1 .+\n.+-front-1 hotpush:\d.+\n.+-run-1 hotpush:\d/,
    );
  });

  test("a second upgrade to the same version changes nothing", async () => {
    const containers = await server.containers();
    const { code, output } = await server.hotpush("upgrade");
    assert.equal(code, 0, output);
    assert.match(output, /Everything is up to date\.\n$/);
    assert.deepEqual(await server.containers(), containers);
  });

  test("it waits for the deployment that runs, and Ctrl-C then changes nothing", async () => {
    await useOwnImage("LABEL version=own");
    await startDeployment();
    const containers = await server.containers();
    const upgrade = startUpgrade();
    const ending = await untilPrinted(
      upgrade,
      /Waiting for deployment \d+ of shop; no other starts/,
      async () => {
        const { output } = await server.hotpush("status");
        assert.match(output, /\nHeld +no deployment starts since .+ hotpush upgrade\n/);
        upgrade.kill("SIGINT");
      },
    );
    assert.equal(ending.code, 1);
    assert.match(ending.output, /given up before anything was changed/);
    assert.deepEqual(await server.containers(), containers);
    assert.doesNotMatch((await server.hotpush("status")).output, /Held/);
  });

  test("when that has ended, it replaces both, and their state stays", async () => {
    const { length } = recordedDeployments(server.runStatePath);
    const ending = await untilPrinted(startUpgrade(), /Waiting for deployment/, async () => endDeployment());
    assert.equal(ending.code, 0, ending.output);
    assert.equal(recordedDeployments(server.runStatePath).at(-1)?.state, "succeeded");
    assert.equal(recordedDeployments(server.runStatePath).length, length);
    assert.match((await server.containers()).join("\n"), /-run-1 hotpush-e2e-upgrade:own/);
  });

  test("if the new front is not healthy, the old version runs again", async () => {
    await useOwnImage('ENTRYPOINT ["false"]');
    const { code, output } = await server.hotpush("upgrade", "--yes");
    assert.equal(code, 1);
    assert.match(output, /The new front is not healthy, so this server runs the old version again/);
    assert.equal((await server.hotpush("upgrade", "--check")).code, 0, "all is as the files say");
  });

  test("if the new run is not healthy, both are the old version again", async () => {
    await useOwnImage(`ENTRYPOINT ["sh", "-c", "[ $0 = front ] && exec tini -- hotpush front; exit 1"]`);
    const { code, output } = await server.hotpush("upgrade", "--yes");
    assert.equal(code, 1);
    assert.match(output, /Replaced front in .+\n.*The new run is not healthy, so this server runs the old/s);
    assert.equal((await server.hotpush("upgrade", "--check")).code, 0, "both are as the files say");
    await startDeployment();
    endDeployment();
    await until("a deployment", () => recordedDeployments(server.runStatePath).at(-1)?.state === "succeeded");
  });

  /** Makes an image on top of the base, and lets the server have it under a name of its own. */
  async function useOwnImage(lines: string): Promise<void> {
    await buildOn(env, base, own, lines);
    const file = join(server.path, ".env");
    writeFileSync(file, readFileSync(file, "utf8").replace(/^HOTPUSH_IMAGE=.*$/m, `HOTPUSH_IMAGE=${own}`));
  }

  async function startDeployment(): Promise<void> {
    writeFileSync(join(server.checkout, "wait"), "");
    assert.equal((await server.hotpush("deploy", "--detach")).code, 0);
    await until("it runs", () => recordedDeployments(server.runStatePath).at(-1)?.state === "running");
  }

  function endDeployment(): void {
    assert.ok(existsSync(join(server.checkout, "wait")));
    rmSync(join(server.checkout, "wait"));
  }

  function startUpgrade() {
    return spawnHotpush(server.checkout, server.env, ["upgrade", "--yes"]);
  }
});

async function buildOn(env: NodeJS.ProcessEnv, from: string, tag: string, lines: string): Promise<void> {
  const building = promisify(execFile)("docker", ["build", "--quiet", "--tag", tag, "-"], { env });
  building.child.stdin?.end(`FROM ${from}\n${lines}\n`);
  await building;
}
