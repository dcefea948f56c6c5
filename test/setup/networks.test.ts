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
function engineWithNetwork(network: object, containers: readonly string[], mostRefusals = 0) {
  const changes: string[] = [];
  let refusals = mostRefusals;
  let present: object | null = { Internal: false, Labels: { "hotpush.project": "shop" }, ...network };
  const answerTo = (path: string) => {
    if (path.startsWith("/containers/json"))
      return containers.map((Id) => ({
        Id,
        Names: [],
        Ports: [],
        NetworkSettings: { Networks: {} },
        Labels: {
          "com.docker.compose.project": Id.replace(/-.*/, ""),
          "com.docker.compose.service": "caddy",
        },
      }));
    if (path === "/networks") return present === null ? [] : [{ Name: "hotpush-shop" }];
    if (present === null) throw new EngineRefusal(404, "no such network");
    return present;
  };
  const engine: Engine = {
    get: async (path) => Buffer.from(JSON.stringify(answerTo(path))),
    async post(path, body) {
      const { Internal } = body as { readonly Internal?: boolean };
      changes.push(`${path} ${Internal ?? ""}`.trim());
      if (path.endsWith("create")) present = body as object;
      return Buffer.from("{}");
    },
    async delete(path) {
      changes.push(`delete ${path}`);
      if (refusals-- > 0) throw new EngineRefusal(403, "has active endpoints");
      present = null;
      return Buffer.from("");
    },
  };
  return { engine, changes };
}

const left = ["/networks/hotpush-shop/disconnect", "delete /networks/hotpush-shop"];

test("the network of a project is made internal, unless its containers are on it or a user has made it", async () => {
  const old = engineWithNetwork({}, ["hotpush-caddy"]);
  const made = [...left, "/networks/create true"];
  assert.deepEqual([await renewProjectNetwork(old.engine, "shop"), old.changes], [true, made]);
  for (const [network, containers, isRight] of [
    [{}, ["hotpush-caddy", "shop-app-1"], false],
    [{ Internal: true }, ["hotpush-caddy", "shop-app-1"], true],
    [{ Labels: {} }, ["hotpush-caddy"], true],
  ] as const) {
    const { engine, changes } = engineWithNetwork(network, containers);
    assert.deepEqual([await renewProjectNetwork(engine, "shop"), changes], [isRight, []]);
  }
});

test("a network that run joins Caddy to again is left again, a few times", async () => {
  const { engine, changes } = engineWithNetwork({}, ["hotpush-caddy"], 2);
  assert.equal(await renewProjectNetwork(engine, "shop"), true);
  assert.deepEqual(changes, [...left, ...left, ...left, "/networks/create true"]);
  await assert.rejects(
    renewProjectNetwork(engineWithNetwork({}, ["hotpush-caddy"], 99).engine, "shop"),
    /endpoints/,
  );
});
