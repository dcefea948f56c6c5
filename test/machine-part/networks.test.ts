import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSubnet } from "../../src/config/subnet.ts";
import { makeProjectNetwork } from "../../src/machine-part/networks.ts";
import { EngineRefusal } from "../../src/platform/docker/engine.ts";
import { isProblem } from "../harness/is-problem.ts";
import { fakeEngine, networkOf } from "./fake-engine.ts";

function range(text: string) {
  const subnet = parseSubnet(text);
  assert.ok(subnet);
  return subnet;
}

const usualRange = range("10.231.0.0/16");

test("a project's network has its name, its label and the first free subnet", async () => {
  const present = [
    networkOf("host", null),
    networkOf("other", "10.231.0.0/27"),
    networkOf("six", "fd00::/64"),
  ];
  const { engine, networks } = fakeEngine(present);
  await makeProjectNetwork(engine, "shop", usualRange);
  assert.deepEqual(networks.at(-1), {
    Name: "hotpush-shop",
    Labels: { "hotpush.project": "shop" },
    IPAM: { Config: [{ Subnet: "10.231.0.32/27" }] },
  });
});

test("a network that is there stays as it is", async () => {
  const { engine, networks } = fakeEngine([networkOf("hotpush-shop", "10.231.0.0/27")]);
  await makeProjectNetwork(engine, "shop", usualRange);
  assert.equal(networks.length, 1);
});

test("a network that another process makes at the same time counts", async () => {
  const { engine, refuse } = fakeEngine();
  refuse(/create/, new EngineRefusal(409, "network with name hotpush-shop already exists"));
  await makeProjectNetwork(engine, "shop", usualRange);
});

test("a subnet that was taken in the meantime is skipped", async () => {
  const { engine, networks, refuse } = fakeEngine();
  refuse(
    /create/,
    new EngineRefusal(403, "invalid pool request: Pool overlaps with other one on this address space"),
  );
  await makeProjectNetwork(engine, "shop", usualRange);
  assert.equal(networks[0]?.IPAM.Config?.[0]?.Subnet, "10.231.0.32/27");
});

test("a range that is used up is refused with what to do", async () => {
  const { engine } = fakeEngine([networkOf("one", "10.231.0.0/27")]);
  await assert.rejects(
    makeProjectNetwork(engine, "shop", range("10.231.0.0/27")),
    isProblem("network_range_full", /10\.231\.0\.0\/27.*docker network prune.*larger range/),
  );
});

test("any other refusal of the engine is reported", async () => {
  const { engine, refuse } = fakeEngine();
  refuse(/create/, new EngineRefusal(500, "no space left on device"));
  await assert.rejects(makeProjectNetwork(engine, "shop", usualRange), isProblem("docker_refused"));
});
