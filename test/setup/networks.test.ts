import assert from "node:assert/strict";
import { test } from "node:test";
import { type Engine, EngineRefusal } from "../../src/platform/docker/engine.ts";
import { keepNetworks } from "../../src/setup/networks.ts";

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
