import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { serverStateAt } from "../../src/config/server.ts";
import type { ComposeModel } from "../../src/platform/compose-model.ts";
import {
  findServerState,
  findStatePath,
  locateIn,
  projectOf,
  projectOnServer,
} from "../../src/rollout/locate-project.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { emptyEngine, engineWithServer } from "./engine-with-server.ts";

const labels = {
  "com.docker.compose.project": "store",
  "com.docker.compose.project.working_dir": "/srv/shop",
  "com.docker.compose.project.config_files": "/srv/shop/prod.yaml",
};
const target = { projectDirectory: "/app", files: [] };

test("the project that Hotpush belongs to keeps its name and its files, but the usual ones", () => {
  const own = { projectName: "store", files: ["/srv/shop/prod.yaml"] };
  assert.deepEqual(projectOf({ labels }, target, "/srv/shop"), own);
  const usual = { ...labels, "com.docker.compose.project.config_files": "/srv/shop/compose.yaml" };
  assert.deepEqual(projectOf({ labels: usual }, target, "/srv/shop"), { ...own, files: [] });
  assert.deepEqual(projectOf({ labels }, target, "/srv/other"), {});
});

test("a project mounted elsewhere is located with both of its paths", () => {
  const mounts = [{ source: "/srv/shop", target: "/app" }];
  assert.deepEqual(locateIn({ labels, mounts }, target), {
    projectDirectory: "/srv/shop",
    directoryHere: "/app",
    projectName: "store",
    files: ["/srv/shop/prod.yaml"],
  });
});

test("a helper with the same mounts and no labels finds the project by its arguments", () => {
  const mounts = [
    { source: "/srv", target: "/srv" },
    { source: "/srv/shop", target: "/app" },
  ];
  const { directoryHere = "", ...found } = locateIn({ labels, mounts }, target);
  const told = { projectDirectory: directoryHere, files: found.files };
  const { projectName: _, ...same } = { ...found, directoryHere };
  assert.deepEqual(locateIn({ labels: {}, mounts }, told), same);
});

test("a project that is not mounted from the host is refused", () => {
  assert.throws(
    () => locateIn({ labels, mounts: [] }, target),
    isProblem("repository_not_mounted", /^\/app /),
  );
});

const networks = { hotpush: { name: "hotpush-shop", external: true } };

/** A checkout of which compose says that it is on the server, or not, and a server without its state. */
function checkout(t: TestContext, model: object = { name: "shop", services: {}, networks }) {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\necho '${JSON.stringify(model)}'\n`);
  const env = { PATH: `${directory}${delimiter}${process.env.PATH}`, XDG_STATE_HOME: "/somewhere" };
  const statePath = join(directory, "state");
  const engine = engineWithServer({ statePath, livePath: join(statePath, "live") });
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

test("the server is found by its containers", async () => {
  const engine = engineWithServer({ statePath: "/srv/state", livePath: "/srv/live" });
  const found = { ...serverStateAt("/srv/state"), live: "/srv/live" };
  assert.deepEqual(await findServerState(engine), found);
  assert.equal(await findServerState(emptyEngine), null);
});
