import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { underLoad } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import {
  type LabProject,
  readLiveFile,
  type ServerLab,
  startServer,
  untilServed,
} from "../lab/server-lab.ts";

// The engine has only one server, and the tests kill the engine.
onOwnEngine("alone", "the networks of a server", (env, engine) => {
  let server: ServerLab;
  let shop: LabProject;

  before(async () => {
    server = await startServer(env);
  });
  after(async () => {
    await engine.start();
    await server?.remove();
  });

  test("a project that is added gets its network, its live directory and its site by itself", async () => {
    shop = server.addProject("shop");
    await server.untilJoined(["shop"]);
    await shop.compose("up", "--detach");
    await untilServed(shop);
    assert.equal(readLiveFile(shop), "web.shop.containers.internal");
    assert.equal(statSync(dirname(shop.liveFile)).mode & 0o777, 0o755);
    assert.match(
      await server.docker("network", "inspect", "hotpush-shop"),
      /"Subnet": "10\.231\.\d+\.\d+\/27"/,
    );
    assert.deepEqual((await server.status()).serverFaults, []);
  });

  test("Caddy's own network stays its gateway", async () => {
    const gateway = await server.docker(
      "network",
      "inspect",
      "hotpush",
      "--format",
      "{{(index .IPAM.Config 0).Gateway}}",
    );
    assert.equal(await defaultRoute(), gateway);
  });

  test("joining and leaving networks fails no request of another project", async () => {
    await underLoad(shop.origin, async () => {
      const other = server.addProject("a-first");
      // A site would cost a reload.
      rmSync(other.siteFile);
      await server.untilJoined(["a-first", "shop"]);
      other.forget();
      await server.untilJoined(["shop"]);
    });
  });

  test("a Caddy that is recreated is on all networks again", async () => {
    await server.compose("up", "--detach", "--wait");
    await server.compose("up", "--detach", "--force-recreate", "caddy");
    await server.untilJoined(["shop"]);
    await untilServed(shop);
  });

  test("a rejected configuration leaves the old one in force, and the status says why", async () => {
    const site = readFileSync(shop.siteFile, "utf8");
    writeFileSync(shop.siteFile, `${site}http://127.0.0.99 {\n\tnonsense\n}\n`);
    const fault = await until("the fault", async () => (await server.status()).serverFaults[0]);
    assert.match(fault, /rejects its configuration and keeps the old one.*sites\/shop\.caddy.*nonsense/s);
    await untilServed(shop);
    writeFileSync(shop.siteFile, site);
    await until("no fault", async () => (await server.status()).serverFaults.length === 0);
  });

  test("live files that are missing come back", async () => {
    rmSync(dirname(shop.liveFile), { recursive: true });
    await until("the live file", () => existsSync(shop.liveFile));
    await untilServed(shop);
  });

  test("everything is served again after a reboot", async () => {
    const ids = (await server.docker("ps", "--quiet")).split("\n");
    const pids = (await server.docker("inspect", ...ids, "--format", "{{.State.Pid}}"))
      .split("\n")
      .map(Number);
    await engine.kill();
    // One that is just restarting has none.
    for (const pid of pids.filter((one) => one > 0)) process.kill(pid, "SIGKILL");
    await engine.start();
    await server.untilJoined(["shop"]);
    await untilServed(shop);
  });

  test("one command repairs what a network prune removed while all was stopped", async () => {
    await server.compose("stop", "--timeout", "1");
    await shop.compose("stop", "--timeout", "1");
    await server.docker("network", "prune", "--force");
    await server.compose("up", "--detach", "--wait", "--force-recreate");
    await server.untilJoined(["shop"]);
    await shop.compose("up", "--detach", "--force-recreate");
    await untilServed(shop);
  });

  test("a project that was stopped during a network prune is recreated with one command", async () => {
    await shop.compose("stop", "--timeout", "1");
    await server.docker("network", "prune", "--force");
    await shop.compose("up", "--detach", "--force-recreate");
    await untilServed(shop);
  });

  test("Caddy is on the networks of 50 projects", async () => {
    const names = Array.from({ length: 49 }, (_, index) => `many-${index}`);
    const projects = names.map(server.addProject);
    await server.untilJoined(["shop", ...names], 60_000);
    assert.deepEqual((await server.status()).serverFaults, []);
    for (const project of projects) project.forget();
    await server.untilJoined(["shop"], 60_000);
    await untilServed(shop);
  });

  async function defaultRoute(): Promise<string> {
    const table = await server.compose("exec", "--no-tty", "caddy", "cat", "/proc/net/route");
    const [, , hex = ""] =
      table
        .split("\n")
        .map((line) => line.split("\t"))
        .find(([, to]) => to === "00000000") ?? [];
    return Buffer.from(hex, "hex").reverse().join(".");
  }
});
