import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chooseEngine, engineNamedIn } from "../../../src/rollout/swarm/choose-engine.ts";
import { mayNameEngine } from "../../../src/rollout/swarm/may-name-engine.ts";
import { namesRegistry } from "../../../src/rollout/swarm/registry.ts";
import { stackFiles } from "../../../src/rollout/swarm/stack-files.ts";

const services = { app: {} };

test("a stack is named by x-hotpush, or by a label of a service or of its container", () => {
  assert.equal(engineNamedIn({ name: "shop", services, "x-hotpush": { engine: "swarm" } }), "swarm");
  const labels = { "hotpush.engine": "swarm" };
  assert.equal(engineNamedIn({ name: "shop", services: { app: { labels } } }), "swarm");
  assert.equal(engineNamedIn({ name: "shop", services: { app: { deploy: { labels } } } }), "swarm");
});

test("a file that says nothing is a compose project", () => {
  assert.equal(engineNamedIn({ name: "shop", services }), "compose");
});

test("another engine is refused", () => {
  const model = { name: "shop", services, "x-hotpush": { engine: "kubernetes" } };
  assert.throws(() => engineNamedIn(model), /"kubernetes"/);
});

test("HOTPUSH_ENGINE decides, also from .env beside the stack file", async (t) => {
  const directory = await temporary(t);
  const request = {
    target: { projectDirectory: directory, files: [] },
    signal: new AbortController().signal,
  };
  assert.equal(await chooseEngine({ ...request, env: { HOTPUSH_ENGINE: "swarm" } }), "swarm");
  await assert.rejects(
    chooseEngine({ ...request, env: { HOTPUSH_ENGINE: "nomad" } }),
    /HOTPUSH_ENGINE is "nomad"/,
  );
  await writeFile(join(directory, ".env"), "HOTPUSH_ENGINE=swarm\n");
  assert.equal(await chooseEngine({ ...request, env: {} }), "swarm");
});

test("compose is asked only of files that may name an engine", async (t) => {
  const directory = await temporary(t);
  const may = async (text: string, env: NodeJS.ProcessEnv = {}) => {
    await writeFile(join(directory, "compose.yaml"), text);
    return mayNameEngine(["compose.yaml"], directory, env);
  };
  assert.equal(await may("services: { app: { image: swarm, labels: { hotpush.check: a } } }"), false);
  assert.equal(await may("services: { app: { labels: [hotpush.engine=swarm] } }"), true);
  assert.equal(await may("x-hotpush: { engine: swarm }"), true);
  for (const elsewhere of ["include: [more.yaml]", "services: { app: { extends: web } }"]) {
    assert.equal(await may(elsewhere), true, elsewhere);
  }
  assert.equal(
    await may("services: { app: { labels: ['$LABEL'] } }", { LABEL: "hotpush.engine=swarm" }),
    true,
  );
  assert.equal(mayNameEngine(["not-there.yaml"], directory, {}), true, "compose says what is wrong with it");
});

test("the files are those given, else COMPOSE_FILE, else a stack file before a compose file", async (t) => {
  const projectDirectory = await temporary(t);
  const files = (given: readonly string[], env: NodeJS.ProcessEnv) =>
    stackFiles({ projectDirectory, files: given }, env);
  assert.deepEqual(files([], {}), []);
  await writeFile(join(projectDirectory, "compose.yaml"), "");
  assert.deepEqual(files([], {}), ["compose.yaml"]);
  await writeFile(join(projectDirectory, "stack.yml"), "");
  assert.deepEqual(files([], {}), ["stack.yml"]);
  assert.deepEqual(files([], { COMPOSE_FILE: "a.yaml:b.yaml" }), ["a.yaml", "b.yaml"]);
  assert.deepEqual(files(["c.yaml"], { COMPOSE_FILE: "a.yaml" }), ["c.yaml"]);
});

test("an image names a registry by a host with a dot or a port, or by localhost", () => {
  for (const image of ["ghcr.io/shop/app", "localhost/app", "localhost:5000/app:1", "registry:5000/app"]) {
    assert.ok(namesRegistry(image), image);
  }
  for (const image of ["app", "app:1.2", "shop/app:1.2"]) assert.ok(!namesRegistry(image), image);
});

async function temporary(t: { readonly after: (work: () => Promise<void>) => void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-stack-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}
