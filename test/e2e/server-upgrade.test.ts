import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { readDeployments, recordedDeliveryCount } from "../harness/records.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { assertNoneFailed, startLoad, startPushes } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { removeImage, untilPrinted } from "../lab/project.ts";
import { makeServer, type ServedProject, type Server } from "../lab/server.ts";

const run = promisify(execFile);

/** Git hosts give up a delivery after ten seconds. */
const hostPatienceMs = 10_000;
const old = "hotpush:e2e-old";
const own = "hotpush-e2e-upgrade:own";
const broken = "hotpush-e2e-upgrade:broken";
const script = "#!/bin/sh\nuntil [ ! -e wait ]; do sleep 0.1; done\n";

onOwnEngine("one server", "hotpush upgrade replaces the server's Hotpush", (env) => {
  let server: Server;
  let shop: ServedProject;
  /** The image that `init` has built. */
  let base: string;

  before(async () => {
    server = await makeServer(env);
    shop = await server.setUp("shop");
    writeScript(join(shop.checkout, "deploy.sh"), script);
    base = /^HOTPUSH_IMAGE=(.*)$/m.exec(readFileSync(server.files.envFile, "utf8"))?.[1] ?? "";
    await useImage(old, "LABEL version=old");
    await server.compose("up", "--detach", "--wait");
    await shop.untilServed();
  });
  after(async () => {
    await server?.remove();
    for (const image of [old, own, broken]) await removeImage(env, image);
  });

  test("under load and 20 pushes a second, no push is lost and no request fails", async (t) => {
    const load = startLoad(shop.origin, 300);
    const pushes = startPushes(shop.origin, shop.secret);
    await until("answers", () => load.answers.length > 30);
    const { code, output } = await shop.hotpush("upgrade", "--yes");
    const soFar = load.answers.length;
    await until("answers after it", () => load.answers.length > soFar + 60);
    const results = await pushes.stop();
    const answered = await load.stop();
    assert.equal(code, 0, output);
    assert.match(output, /Replaced front\.\nReplaced run\.\nThis server runs hotpush:\d/);
    assertNoneFailed([answered]);
    const refused = results.filter(({ status }) => status !== 202);
    assert.deepEqual(refused.slice(0, 3), [], `${refused.length} of ${results.length} pushes failed`);
    await until("run has all pushes", () => recordedDeliveryCount(server.state.run) === results.length);
    const slowestMs = Math.max(...results.map(({ tookMs }) => tookMs));
    assert.ok(slowestMs < hostPatienceMs, `a push waited ${slowestMs} ms`);
    t.diagnostic(
      `${results.length} pushes, the slowest took ${slowestMs} ms; ${answered.answers.length} requests`,
    );
    assert.match(
      (await containers()).join("\n"),
      /-caddy-1 .+\n.+-front-1 hotpush:\d.+\n.+-run-1 hotpush:\d/,
    );
  });

  test("it waits for the deployment that runs, and Ctrl-C then changes nothing", async () => {
    await useImage(own, "LABEL version=own");
    await startDeployment();
    const seen = await containers();
    const upgrade = shop.start("upgrade", "--yes");
    const ending = await untilPrinted(
      upgrade,
      /Waiting for deployment \d+ of shop; no other starts/,
      async () => {
        const { output } = await shop.hotpush("status");
        assert.match(output, /\nHeld +no deployment starts since .+ hotpush upgrade\n/);
        upgrade.kill("SIGINT");
      },
    );
    assert.equal(ending.code, 1);
    assert.match(ending.output, /given up before anything was changed/);
    assert.deepEqual(await containers(), seen);
    assert.doesNotMatch((await shop.hotpush("status")).output, /Held/);
  });

  test("when that has ended, it replaces both, and their state stays", async () => {
    const { length } = readDeployments(server.state.run);
    const ending = await untilPrinted(shop.start("upgrade", "--yes"), /Waiting for deployment/, async () =>
      endDeployment(),
    );
    assert.equal(ending.code, 0, ending.output);
    assert.equal(readDeployments(server.state.run).at(-1)?.state, "succeeded");
    assert.equal(readDeployments(server.state.run).length, length);
    assert.match((await containers()).join("\n"), /-run-1 hotpush-e2e-upgrade:own/);
  });

  test("if the new run is not healthy, both are the old version again, also after Ctrl-C", async () => {
    await useImage(broken, `ENTRYPOINT ["sh", "-c", "[ $0 = front ] && exec tini -- hotpush front; exit 1"]`);
    const upgrade = shop.start("upgrade", "--yes");
    const interrupt = async () => void upgrade.kill("SIGINT");
    const { code, output } = await untilPrinted(upgrade, /Replaced front\./, interrupt);
    assert.equal(code, 1);
    assert.match(output, /Replaced front\.\n.*The new run is not healthy, so this server runs the old/s);
    assert.equal((await shop.hotpush("upgrade")).code, 0, "both are as the files say");
    await startDeployment();
    endDeployment();
    await until("a deployment", () => readDeployments(server.state.run).at(-1)?.state === "succeeded");
  });

  /** Makes an image on top of the base, and lets the server have it. */
  async function useImage(tag: string, lines: string): Promise<void> {
    const building = run("docker", ["build", "--quiet", "--tag", tag, "-"], { env });
    building.child.stdin?.end(`FROM ${base}\n${lines}\n`);
    await building;
    const file = server.files.envFile;
    writeFileSync(file, readFileSync(file, "utf8").replace(/^HOTPUSH_IMAGE=.*$/m, `HOTPUSH_IMAGE=${tag}`));
  }

  async function startDeployment(): Promise<void> {
    writeFileSync(join(shop.checkout, "wait"), "");
    assert.equal((await shop.hotpush("deploy", "--detach")).code, 0);
    await until("it runs", () => readDeployments(server.state.run).at(-1)?.state === "running");
  }

  function endDeployment(): void {
    assert.ok(existsSync(join(shop.checkout, "wait")));
    rmSync(join(shop.checkout, "wait"));
  }

  /** The server's containers, each as `<name> <image> <id>`. */
  async function containers(): Promise<readonly string[]> {
    const filter = "label=com.docker.compose.project=hotpush";
    const format = "{{.Names}} {{.Image}} {{.ID}}";
    return (await server.docker("ps", "--filter", filter, "--format", format)).split("\n").sort();
  }
});
