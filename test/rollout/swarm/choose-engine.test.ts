import "../../harness/environment.ts";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
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
  const projectDirectory = await temporary(t);
  await writeFile(join(projectDirectory, "docker"), "#!/bin/sh\ntouch asked\nexit 1\n", { mode: 0o755 });
  const env = { PATH: `${projectDirectory}:${process.env.PATH}` };
  const signal = new AbortController().signal;
  const isAskedOf = async (text: string, more: NodeJS.ProcessEnv = {}) => {
    await writeFile(join(projectDirectory, "compose.yaml"), text);
    await rm(join(projectDirectory, "asked"), { force: true });
    const target = { projectDirectory, files: [] };
    assert.equal(await chooseEngine({ target, signal, env: { ...env, ...more } }), "compose");
    return existsSync(join(projectDirectory, "asked"));
  };
  assert.equal(await isAskedOf("services: { app: { image: swarm, labels: { hotpush.check: a } } }"), false);
  for (const text of [
    "services: { app: { labels: [hotpush.engine=swarm] } }",
    "services: { app: { labels: ['$NAMESPACE.engine=swarm'] } }",
    "services: { app: { labels: ['hotpush.$WHAT=swarm'] } }",
    'services: { app: { labels: { "hotpush\\u002eengine": swarm } } }',
    "services: { app: { label_file: labels } }",
    "services: { app: { extends: web } }",
    "include: [more.yaml]",
    "x-hotpush: { engine: swarm }",
  ]) {
    assert.equal(await isAskedOf(text), true, text);
  }
  const variable = "services: { app: { labels: ['$LABEL'] } }";
  assert.equal(await isAskedOf(variable, { LABEL: "hotpush.engine=swarm" }), true);
  assert.equal(await isAskedOf(variable, { COMPOSE_ENV_FILES: "variables" }), true);
  await writeFile(join(projectDirectory, ".env"), "LABEL=hotpush.engine=swarm\n");
  assert.equal(await isAskedOf(variable), true);
  await rm(join(projectDirectory, ".env"));
  assert.equal(await isAskedOf("", { COMPOSE_FILE: "not-there.yaml" }), true, "compose says what is wrong");
});

test("where there is no file here, compose is asked, which looks in the directories above", async (t) => {
  assert.equal(mayNameEngine([], await temporary(t), {}), true);
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
