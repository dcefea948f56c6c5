import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSubnet } from "../../src/config/subnet.ts";
import { makeProjectNetwork } from "../../src/machine-part/networks.ts";
import { type Engine, EngineRefusal } from "../../src/platform/docker/engine.ts";
import { isProblem } from "../harness/is-problem.ts";

interface Network {
  readonly Name: string;
  readonly IPAM: { readonly Config: readonly { readonly Subnet: string }[] | null };
}

/** An engine with these networks; `refuse` may refuse to make one. */
function engineWith(networks: Network[], refuse: (made: Network) => EngineRefusal | null = () => null) {
  const refused: string[] = [];
  const engine: Engine = {
    get: async () => Buffer.from(JSON.stringify(networks)),
    post: async (_path, body) => {
      const made = body as Network;
      const refusal = refuse(made);
      if (refusal) {
        refused.push(made.IPAM.Config?.[0]?.Subnet ?? "");
        throw refusal;
      }
      networks.push(made);
      return Buffer.from("{}");
    },
    delete: async () => Buffer.from(""),
  };
  return { engine, networks, refused };
}

function networkOf(name: string, subnet: string | null): Network {
  return { Name: name, IPAM: { Config: subnet === null ? null : [{ Subnet: subnet }] } };
}

function range(text: string) {
  const subnet = parseSubnet(text);
  assert.ok(subnet);
  return subnet;
}

test("a project's network has its name, its label and the first free subnet", async () => {
  const present = [
    networkOf("host", null),
    networkOf("other", "10.231.0.0/27"),
    networkOf("six", "fd00::/64"),
  ];
  const { engine, networks } = engineWith(present);
  await makeProjectNetwork(engine, "shop", range("10.231.0.0/16"));
  assert.deepEqual(networks.at(-1), {
    Name: "hotpush-shop",
    Labels: { "hotpush.project": "shop" },
    IPAM: { Config: [{ Subnet: "10.231.0.32/27" }] },
  });
});

test("a network that is there stays as it is", async () => {
  const { engine, networks } = engineWith([networkOf("hotpush-shop", "10.231.0.0/27")]);
  await makeProjectNetwork(engine, "shop", range("10.231.0.0/16"));
  assert.equal(networks.length, 1);
});

test("a network that another process makes at the same time counts", async () => {
  const { engine } = engineWith(
    [],
    () => new EngineRefusal(409, "network with name hotpush-shop already exists"),
  );
  await makeProjectNetwork(engine, "shop", range("10.231.0.0/16"));
});

test("a subnet that was taken in the meantime is skipped", async () => {
  const overlap = new EngineRefusal(
    403,
    "invalid pool request: Pool overlaps with other one on this address space",
  );
  const isFirst = ({ IPAM }: Network) => IPAM.Config?.[0]?.Subnet === "10.231.0.0/27";
  const { engine, networks, refused } = engineWith([], (made) => (isFirst(made) ? overlap : null));
  await makeProjectNetwork(engine, "shop", range("10.231.0.0/16"));
  assert.deepEqual(refused, ["10.231.0.0/27"]);
  assert.equal(networks[0]?.IPAM.Config?.[0]?.Subnet, "10.231.0.32/27");
});

test("a range that is used up is refused with what to do", async () => {
  const { engine } = engineWith([networkOf("one", "10.231.0.0/27")]);
  await assert.rejects(
    makeProjectNetwork(engine, "shop", range("10.231.0.0/27")),
    isProblem("network_range_full", /10\.231\.0\.0\/27.*docker network prune.*larger range/),
  );
});

test("any other refusal of the engine is reported", async () => {
  const { engine } = engineWith([], () => new EngineRefusal(500, "no space left on device"));
  await assert.rejects(
    makeProjectNetwork(engine, "shop", range("10.231.0.0/16")),
    isProblem("docker_refused"),
  );
});
