import assert from "node:assert/strict";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ComposeModel, ownHeading } from "../../src/platform/compose.ts";
import type { Container } from "../../src/platform/docker/containers.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import {
  chooseEngine,
  findLiveDirectory,
  findStatePath,
  hostPathOf,
  projectOnServer,
  refuseLostOverride,
  stackFiles,
  withoutNeighbors,
} from "../../src/rollout/locate-project.ts";
import type { Version } from "../../src/rollout/state.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { engineWith, sampleContainer } from "./sample.ts";

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

test("without its server, or its directory there, a project is not rolled out", async (t) => {
  const livePath = join(temporaryDirectory(t), "none");
  const none = isProblem("live_file_not_writable", /^shop is on Hotpush's server .* has none/);
  await assert.rejects(findLiveDirectory(engineHaving(), onMachine, {}), none);
  const engine = engineWithServer("/nowhere", livePath);
  const missing = isProblem("live_file_not_writable", /none\/shop, .* docker start/);
  await assert.rejects(findLiveDirectory(engine, onMachine, {}), missing);
});

const workingDirectory = "com.docker.compose.project.working_dir";
const startedIn = (directory: string, differences: Parameters<typeof sampleContainer>[0] = {}) =>
  sampleContainer({ labels: { [workingDirectory]: directory }, ...differences });
const shop = { name: "shop", services: { app: {} } };
/** This process runs in no container. */
const onHost = engineWith(() => []);

test("containers of another checkout with the same project name end a rollout; a moved or linked one is the same", async (t) => {
  const root = temporaryDirectory(t);
  const [here, there, link] = ["a/shop", "b/shop", "link"].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  for (const directory of [here, there]) mkdirSync(directory, { recursive: true });
  symlinkSync(here, link);
  const lookFor = (current: Version | null, ...containers: readonly Container[]) =>
    withoutNeighbors(onHost, here, shop, containers, current);
  const look = (...containers: readonly Container[]) => lookFor(null, ...containers);
  const own = [startedIn(here), startedIn(link), startedIn(join(root, "gone")), sampleContainer()];
  assert.deepEqual(await look(...own), own);
  const taken = isProblem("project_name_taken", new RegExp(`the one in ${there}, whose container shop-`));
  await assert.rejects(look(...own, startedIn(there)), taken);
  await assert.rejects(look(startedIn(there, { status: "exited" })), taken);
  await assert.rejects(look(startedIn(there, { service: "site" })), taken);
  // Once deployed from here, a container is this one's, wherever it was started.
  const takenOver = startedIn(there);
  const { id, image, service } = takenOver;
  const recorded = (containers?: readonly string[]): Version => ({
    commit: "1",
    finishedAt: "2026-01-01T00:00:00Z",
    images: {
      [service]: containers ? { image, id: image, tag: image, containers } : { image, id: image, tag: image },
    },
  });
  assert.deepEqual(await lookFor(recorded([id]), takenOver), [takenOver]);
  assert.deepEqual(await lookFor(recorded(), takenOver), [takenOver]);
  await assert.rejects(lookFor(recorded(["another"]), takenOver), taken);
  // What the other has left is not this one's to remove, or to advise about.
  assert.deepEqual(await look(...own, startedIn(there, { service: "site", status: "exited" })), own);
});

test("an override that a push brought in place of ours ends a rollout, with its name", async (t) => {
  const { env, engine, path, target } = checkout(t);
  const at = (name: string) => join(target.projectDirectory, name);
  const inScript = { ...env, STATE_PATH: path };
  const look = (model: object = shop, env: NodeJS.ProcessEnv = inScript) =>
    refuseLostOverride(engine, target, model as ComposeModel, env);
  const lost = (name: string) => isProblem("override_lost", new RegExp(`/${name} is new`));
  await look();
  writeFileSync(at("compose.override.yaml"), `${ownHeading}.\nservices: {}\n`);
  await look();
  for (const name of ["compose.override.yml", "docker-compose.override.yaml"]) {
    writeFileSync(at(name), "services: {}\n");
    for (const env of [inScript, {}]) await assert.rejects(look(onMachine, env), lost(name));
    rmSync(at(name));
  }
  writeFileSync(at("compose.override.yaml"), "services: {}\n");
  await assert.rejects(look(), lost("compose.override.yaml"));
  // By its own networks it is on the server; another project, by hand, is not; and init has found another place.
  await look(onMachine);
  await look(shop, { ...inScript, STATE_PATH: "/elsewhere/shop" });
  await look(shop, env);
  await look(shop, { ...inScript, COMPOSE_FILE: "compose.yaml:compose.override.yaml:compose.hotpush.yaml" });
});

test("x-hotpush in the file names the engine", async (t) => {
  assert.equal(await engineOf(t, "services: { app: { image: swarm } }"), "compose");
  assert.equal(await engineOf(t, "x-hotpush: { engine: swarm }"), "swarm");
  assert.equal(await engineOf(t, "x-hotpush: { stack: shop }"), "compose");
  await assert.rejects(engineOf(t, "x-hotpush: { engine: nomad }"), isProblem("compose_invalid", /"nomad"/));
});

/** The engine of a project with this compose file. */
async function engineOf(t: TestContext, text: string): Promise<string> {
  const projectDirectory = temporaryDirectory(t);
  writeFileSync(join(projectDirectory, "compose.yaml"), text);
  return chooseEngine({ target: { projectDirectory, files: [] }, env: {} });
}

test("uses the given files, else COMPOSE_FILE, else a stack file, else compose", (t) => {
  const projectDirectory = temporaryDirectory(t);
  const files = (given: readonly string[], env: NodeJS.ProcessEnv) =>
    stackFiles({ projectDirectory, files: given }, env);
  assert.deepEqual(files([], {}), []);
  writeFileSync(join(projectDirectory, "compose.yaml"), "");
  assert.deepEqual(files([], {}), ["compose.yaml"]);
  writeFileSync(join(projectDirectory, "stack.yml"), "");
  assert.deepEqual(files([], {}), ["stack.yml"]);
  assert.deepEqual(files([], { COMPOSE_FILE: "a.yaml:b.yaml" }), ["a.yaml", "b.yaml"]);
  assert.deepEqual(files(["c.yaml"], { COMPOSE_FILE: "a.yaml" }), ["c.yaml"]);
});

/** An engine with only the containers of a server: its state is at `statePath`, its live files at `livePath`. */
function engineWithServer(statePath: string, livePath: string): Engine {
  const named = (service: string) => ({ Labels: { "com.docker.compose.service": service } });
  const Mounts = [{ Type: "bind", Source: livePath, Destination: "/run/live" }];
  const Env = [`SERVER_STATE_PATH=${statePath}`];
  return engineHaving({ Config: named("caddy"), Mounts }, { Config: { ...named("run"), Env } });
}

function engineHaving(...containers: readonly object[]): Engine {
  return engineWith((path) => {
    const found = containers[Number(/\/containers\/(\d+)\/json/.exec(path)?.[1])];
    const listed = containers.map((_, index) => ({ Id: String(index) }));
    return found ? { Id: "x", Name: "/x", State: { Status: "exited" }, ...found } : listed;
  });
}
