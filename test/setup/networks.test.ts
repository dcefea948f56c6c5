import assert from "node:assert/strict";
import { test } from "node:test";
import { type Engine, EngineRefusal } from "../../src/platform/docker/engine.ts";
import { keepNetworks, renewProjectNetwork } from "../../src/setup/networks.ts";

const caddy = { id: "caddy", networks: ["hotpush", "hotpush-front"] };
const all = ["/networks/hotpush-shop/connect", "/networks/hotpush-blog/connect"];

for (const [claim, network, status, faults, joined] of [
  ["a network that another process makes at the same time counts", "hotpush-", 409, [], all],
  ["a network that is refused keeps Caddy from no other", "hotpush-shop", 500, ["it fails"], all.slice(1)],
] as const)
  test(claim, async () => {
    const seen: string[] = [];
    const engine: Engine = {
      get: async () => Buffer.from("[]"),
      async post(path, body = {}) {
        if (JSON.stringify(body).includes(network)) throw new EngineRefusal(status, "it fails");
        if (path.endsWith("connect")) seen.push(path);
        return Buffer.from("{}");
      },
      delete: async () => Buffer.from(""),
    };
    assert.deepEqual([await keepNetworks(engine, [caddy], ["shop", "blog"], []), seen], [faults, joined]);
  });

/** An engine with a network of a project, on which are these containers. It records what changes. */
function engineWithNetwork(network: object, containers: readonly string[]) {
  const changes: string[] = [];
  const Containers = Object.fromEntries(containers.map((id) => [id, {}]));
  const present = {
    Name: "hotpush-shop",
    Internal: false,
    Labels: { "hotpush.project": "shop" },
    Containers,
  };
  const Caddy = { Id: "caddy", Names: [], Labels: {}, Ports: [], NetworkSettings: { Networks: {} } };
  const answerTo = (path: string) => {
    if (path.startsWith("/containers/json")) return [Caddy];
    return path === "/networks" ? [] : { ...present, ...network };
  };
  const engine: Engine = {
    get: async (path) => Buffer.from(JSON.stringify(answerTo(path))),
    async post(path, body) {
      changes.push(`${path} ${(body as { readonly Internal?: boolean }).Internal ?? ""}`.trim());
      return Buffer.from("{}");
    },
    async delete(path) {
      changes.push(`delete ${path}`);
      return Buffer.from("");
    },
  };
  return { engine, changes };
}

test("the network of a project is made internal, unless its containers are on it or a user has made it", async () => {
  const made = [
    "/networks/hotpush-shop/disconnect",
    "delete /networks/hotpush-shop",
    "/networks/create true",
  ];
  const old = engineWithNetwork({}, ["caddy"]);
  assert.deepEqual([await renewProjectNetwork(old.engine, "shop"), old.changes], [true, made]);
  const used = engineWithNetwork({}, ["caddy", "shop-app-1"]);
  assert.deepEqual([await renewProjectNetwork(used.engine, "shop"), used.changes], [false, []]);
  const internal = engineWithNetwork({ Internal: true }, ["caddy", "shop-app-1"]);
  assert.equal(await renewProjectNetwork(internal.engine, "shop"), true);
  const users = engineWithNetwork({ Labels: {} }, ["caddy"]);
  await renewProjectNetwork(users.engine, "shop");
  assert.ok(![...internal.changes, ...users.changes].some((change) => change.startsWith("delete")));
});
