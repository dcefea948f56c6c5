import assert from "node:assert/strict";
import { test } from "node:test";
import { type Engine, EngineRefusal } from "../../src/platform/docker/engine.ts";
import { keepNetworks } from "../../src/setup/networks.ts";

const caddy = { id: "caddy", networks: ["hotpush", "hotpush-front"] };

/** Keeps Caddy on the networks of shop and blog, on an engine that refuses some requests. @returns what was done, and the faults */
async function keepWith(refuse: (path: string, body: object, made: readonly object[]) => void) {
  const made: object[] = [];
  const joined: string[] = [];
  const engine: Engine = {
    get: async () => Buffer.from("[]"),
    async post(path, body = {}) {
      refuse(path, body as object, made);
      if (path === "/networks/create") made.push(body as object);
      else joined.push(path);
      return Buffer.from("{}");
    },
    delete: async () => Buffer.from(""),
  };
  const faults = await keepNetworks(engine, [caddy], { joined: ["shop", "blog"], kept: [] });
  return { faults, made, joined };
}

const all = ["/networks/hotpush-shop/connect", "/networks/hotpush-blog/connect"];

test("each project has a network with a subnet of its own, past one that is taken", async () => {
  const { made, joined } = await keepWith((path, body, before) => {
    const isTaken = JSON.stringify(body).includes("10.231.0.0/27") || before.length > 0;
    const isFree = JSON.stringify(body).includes("10.231.0.64/27");
    if (path.endsWith("create") && isTaken && !isFree)
      throw new EngineRefusal(403, "invalid pool request: Pool overlaps with other one");
  });
  const networkOf = (project: string, Subnet: string) => ({
    Name: `hotpush-${project}`,
    Labels: { "hotpush.project": project },
    IPAM: { Config: [{ Subnet }] },
  });
  assert.deepEqual(made, [networkOf("shop", "10.231.0.32/27"), networkOf("blog", "10.231.0.64/27")]);
  assert.deepEqual(joined, all);
});

test("a network that another process makes at the same time counts", async () => {
  const { faults, joined } = await keepWith((path) => {
    if (path.endsWith("create"))
      throw new EngineRefusal(409, "network with name hotpush-blog already exists");
  });
  assert.deepEqual([faults, joined], [[], all]);
});

test("a network that cannot be made does not keep Caddy from the others", async () => {
  const { faults, joined } = await keepWith((_path, body) => {
    if (JSON.stringify(body).includes("hotpush-shop"))
      throw new EngineRefusal(500, "no space left on device");
  });
  assert.deepEqual([faults, joined], [["no space left on device"], all.slice(1)]);
});
