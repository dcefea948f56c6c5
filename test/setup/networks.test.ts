import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineRefusal } from "../../src/platform/docker/engine.ts";
import { keepNetworks, listCaddyContainers, makeProjectNetwork } from "../../src/setup/networks.ts";
import { isProblem } from "../harness/problems.ts";
import { type FakeEngine, fakeEngine, networkOf } from "./fake-engine.ts";

const own = ["hotpush", "hotpush-front"];

async function joinAll(fake: FakeEngine, joined: readonly string[], kept: readonly string[] = []) {
  const { engine, requests } = fake;
  const caddies = await listCaddyContainers(engine);
  requests.length = 0;
  return await keepNetworks(engine, caddies, { joined, kept });
}

test("Caddy is joined to the network of each project, which is made if it is missing", async () => {
  const fake = fakeEngine([networkOf("hotpush-shop", "10.231.0.0/27")], new Map([["caddy", [...own]]]));
  assert.deepEqual(await joinAll(fake, ["shop", "blog"]), []);
  assert.deepEqual(fake.caddies.get("caddy"), [...own, "hotpush-shop", "hotpush-blog"]);
  assert.deepEqual(
    fake.networks.map(({ Name }) => Name),
    ["hotpush-shop", "hotpush-blog"],
  );
});

test("the engine is not asked if Caddy is on all networks", async () => {
  const fake = fakeEngine([], new Map([["caddy", [...own, "hotpush-shop"]]]));
  await joinAll(fake, ["shop"]);
  assert.deepEqual(fake.requests, []);
});

test("both containers of a Caddy that is recreated are joined", async () => {
  const fake = fakeEngine(
    [],
    new Map([
      ["old", [...own, "hotpush-shop"]],
      ["new", [...own]],
    ]),
  );
  await joinAll(fake, ["shop"]);
  assert.deepEqual(fake.caddies.get("new"), [...own, "hotpush-shop"]);
});

test("Caddy leaves the network of a project that has neither settings nor a site", async () => {
  const fake = fakeEngine([], new Map([["caddy", [...own]]]));
  await joinAll(fake, ["shop", "blog", "wiki"]);
  await joinAll(fake, ["shop"], ["blog"]);
  assert.deepEqual(fake.caddies.get("caddy"), [...own, "hotpush-shop", "hotpush-blog"]);
});

test("a network that cannot be made does not keep Caddy from the others", async () => {
  const fake = fakeEngine([], new Map([["caddy", [...own]]]));
  fake.refuse(/create/, new EngineRefusal(500, "no space left on device"));
  assert.deepEqual(await joinAll(fake, ["blog", "shop"]), ["no space left on device"]);
  assert.deepEqual(fake.caddies.get("caddy"), [...own, "hotpush-shop"]);
});

test("a container that is removed in the meantime is no fault", async () => {
  const fake = fakeEngine([], new Map([["caddy", [...own]]]));
  fake.refuse(/connect/, new EngineRefusal(404, "No such container: caddy"));
  assert.deepEqual(await joinAll(fake, ["shop"]), []);
});

test("a project's network has its name, its label and a subnet of its own", async () => {
  const { engine, networks } = fakeEngine([networkOf("host", null)]);
  await makeProjectNetwork(engine, "shop");
  assert.deepEqual(networks.at(-1), {
    Name: "hotpush-shop",
    Labels: { "hotpush.project": "shop" },
    IPAM: { Config: [{ Subnet: "10.231.0.0/27" }] },
  });
});

test("a network that is there, or that another process makes at the same time, counts", async () => {
  const { engine, networks, refuse } = fakeEngine([networkOf("hotpush-shop", "10.231.0.0/27")]);
  await makeProjectNetwork(engine, "shop");
  refuse(/create/, new EngineRefusal(409, "network with name hotpush-blog already exists"));
  await makeProjectNetwork(engine, "blog");
  assert.equal(networks.length, 1);
});

test("a subnet that is taken is skipped, and any other refusal is reported", async () => {
  const { engine, networks, refuse } = fakeEngine();
  refuse(/create/, new EngineRefusal(403, "invalid pool request: Pool overlaps with other one"));
  await makeProjectNetwork(engine, "shop");
  assert.equal(networks[0]?.IPAM.Config?.[0]?.Subnet, "10.231.0.32/27");
  refuse(/create/, new EngineRefusal(500, "no space left on device"));
  await assert.rejects(makeProjectNetwork(engine, "blog"), isProblem("docker_refused"));
});
