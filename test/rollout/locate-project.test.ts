import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ComposeModel } from "../../src/platform/compose.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  findLiveDirectory,
  findStatePath,
  hostPathOf,
  projectOnServer,
} from "../../src/rollout/locate-project.ts";
import { adoptLiveFiles } from "../../src/rollout/switch-traffic.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { engineWith, liveDirectory as liveDirectoryOf, sampleRollout, sampleService } from "./sample.ts";

test("the host's path is that of the innermost mount", () => {
  const mounts = [
    { source: "/srv", target: "/repos" },
    { source: "/home/me/shop", target: "/repos/shop" },
  ];
  const paths = ["/repos/shop", "/repos/shop/deploy", "/repos/shopping", "/app"];
  const expected = ["/home/me/shop", "/home/me/shop/deploy", "/srv/shopping", null];
  assert.deepEqual(
    paths.map((path) => hostPathOf(mounts, path)),
    expected,
  );
});

const networks = { hotpush: { name: "hotpush-shop", external: true } };

/** A checkout of which compose says that it is on the server, or not, and a server without its state. */
function checkout(t: TestContext, model: object = { name: "shop", services: {}, networks }) {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\necho '${JSON.stringify(model)}'\n`);
  const env = { PATH: `${directory}${delimiter}${process.env.PATH}`, XDG_STATE_HOME: "/somewhere" };
  const statePath = join(directory, "state");
  const engine = engineWithServer(statePath, join(statePath, "live"));
  const path = join(statePath, "projects/shop");
  return { env, engine, path, target: { projectDirectory: directory, files: [] } };
}

test("by hand, the state of a project on the server is that of its script", async (t) => {
  const { engine, target, env, path } = checkout(t);
  mkdirSync(path, { recursive: true });
  assert.equal(await findStatePath(engine, target, env), path);
  const inRun = { ...env, STATE_PATH: "/var/lib/hotpush/run", SERVER_STATE_PATH: "/var/lib/hotpush" };
  assert.equal(await findStatePath(engine, target, inRun), path);
});

test("a given state counts, another project's is the user's, an unusable one is refused", async (t) => {
  const { engine, target, env, path } = checkout(t);
  assert.equal(await findStatePath(engine, target, { ...env, STATE_PATH: "/given" }), "/given");
  await assert.rejects(findStatePath(engine, target, env), isProblem("state_unusable", new RegExp(path)));
  const other = checkout(t, { name: "shop", services: {} });
  assert.equal(await findStatePath(other.engine, other.target, other.env), "/somewhere/hotpush");
});

const external = (name: string) => ({ name, external: true });

function model(networks: NonNullable<ComposeModel["networks"]>, aliases: Record<string, string> = {}) {
  const joined = Object.entries(aliases).map(([key, alias]) => [key, { aliases: [alias] }]);
  return { name: "my_shop", services: { web: { networks: Object.fromEntries(joined) } }, networks };
}

test("a project is named by its external network, if it is its own and no reserved name", () => {
  assert.equal(projectOnServer(model({ proxy: external("hotpush-shop") })), "shop");
  assert.equal(projectOnServer({ name: "shop", services: {} }), null);
  assert.equal(projectOnServer(model({ default: { name: "hotpush-shop" } })), null);
  assert.equal(projectOnServer(model({ other: external("hotpush-front") })), null);
  const blog = external("hotpush-blog");
  const shop = external("hotpush-shop");
  const own = { shop: "web.shop.containers.internal", blog: "orders" };
  assert.equal(projectOnServer(model({ blog, shop }, own)), "shop");
  assert.equal(projectOnServer({ ...model({ blog, shop }), name: "shop" }), "shop");
});

const onMachine: ComposeModel = { name: "my_shop", services: {}, networks };
const nothing = { livePath: undefined };

test("without its server, or its directory there, a project is not rolled out", async (t) => {
  const livePath = join(temporaryDirectory(t), "none");
  const none = isProblem("live_file_not_writable", /^shop is on Hotpush's server .* has none/);
  await assert.rejects(findLiveDirectory(engineOf(), onMachine, nothing), none);
  const engine = engineWithServer("/nowhere", livePath);
  const missing = isProblem("live_file_not_writable", /none\/shop, .* docker start/);
  await assert.rejects(findLiveDirectory(engine, onMachine, nothing), missing);
});

test("the live file of a service that is recreated leads to the service itself", async (t) => {
  const liveDirectory = liveDirectoryOf(t, "shop");
  const recreated = { how: "recreate", reason: "label" } as const;
  const services = [
    sampleService({ name: "admin", replacement: recreated }),
    sampleService({ name: "db", replacement: recreated }),
  ];
  const file = join(liveDirectory.path, "admin");
  writeFileSync(file, "shop-admin-7");
  const project = { name: "shop", services };
  await adoptLiveFiles(sampleRollout(temporaryDirectory(t), { liveDirectory, project }));
  assert.equal(readFileSync(file, "utf8"), "admin.shop.containers.internal");
  assert.deepEqual(readdirSync(liveDirectory.path), ["admin"]);
});

/** An engine with only the containers of a server: its state is at `statePath`, its live files at `livePath`. */
function engineWithServer(statePath: string, livePath: string): Engine {
  const named = (service: string) => ({ Labels: { "com.docker.compose.service": service } });
  const Mounts = [{ Type: "bind", Source: livePath, Destination: "/run/live" }];
  const Env = [`SERVER_STATE_PATH=${statePath}`];
  return engineOf({ Config: named("caddy"), Mounts }, { Config: { ...named("run"), Env } });
}

function engineOf(...containers: readonly object[]): Engine {
  return engineWith((path) => {
    const found = containers[Number(/\/containers\/(\d+)\/json/.exec(path)?.[1])];
    const listed = containers.map((_, index) => ({ Id: String(index) }));
    return found ? { Id: "x", Name: "/x", State: { Status: "exited" }, ...found } : listed;
  });
}
