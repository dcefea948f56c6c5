import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { machineStateAt } from "../../../src/config/machine-part.ts";
import type { ComposeModel } from "../../../src/platform/compose/model.ts";
import { findMachineState, machineProjectOf } from "../../../src/rollout/compose/machine-part.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";
import { emptyEngine, engineWithMachinePart } from "../machine-engine.ts";

const external = (name: string) => ({ name, external: true });

function model(networks: NonNullable<ComposeModel["networks"]>, aliases: Record<string, string> = {}) {
  const joined = Object.entries(aliases).map(([key, alias]) => [key, { aliases: [alias] }]);
  return { name: "my_shop", services: { web: { networks: Object.fromEntries(joined) } }, networks };
}

test("the project is named by its external network, whatever the compose project is called", () => {
  assert.equal(machineProjectOf(model({ proxy: external("hotpush-shop") })), "shop");
});

test("without such a network a project is not on the machine part", () => {
  assert.equal(machineProjectOf({ name: "shop", services: {} }), null);
  assert.equal(machineProjectOf(model({ default: { name: "hotpush-shop" } })), null);
  assert.equal(machineProjectOf(model({ other: external("hotpush-receive") })), null);
});

test("a project that joins another one's network is still itself", () => {
  const [blog, shop] = [external("hotpush-blog"), external("hotpush-shop")];
  const own = { shop: "web.shop.containers.internal", blog: "orders" };
  assert.equal(machineProjectOf(model({ blog, shop }, own)), "shop");
  assert.equal(machineProjectOf({ ...model({ blog, shop }), name: "shop" }), "shop");
});

test("the machine part is found by its containers", async () => {
  const engine = engineWithMachinePart({ statePath: "/srv/state", livePath: "/srv/live" });
  const found = { ...machineStateAt("/srv/state"), live: "/srv/live" };
  assert.deepEqual(await findMachineState(engine, {}), found);
});

test("without its containers, the machine part is found by its files", async (t) => {
  const path = join(temporaryDirectory(t), "hotpush");
  const env = { MACHINE_PATH: path };
  assert.equal(await findMachineState(emptyEngine, env), null);
  mkdirSync(path);
  writeFileSync(join(path, ".env"), "STATE_PATH=/srv/state\n");
  assert.deepEqual(await findMachineState(emptyEngine, env), machineStateAt("/srv/state"));
});
