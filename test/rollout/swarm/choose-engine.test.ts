import "../../harness/environment.ts";
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { chooseEngine, engineNamedIn, mayNameEngine } from "../../../src/rollout/swarm/choose-engine.ts";

const services = { app: {} };

test("x-hotpush or a label of a service or its container selects Swarm", () => {
  assert.equal(engineNamedIn({ name: "shop", services, "x-hotpush": { engine: "swarm" } }), "swarm");
  const labels = { "hotpush.engine": "swarm" };
  assert.equal(engineNamedIn({ name: "shop", services: { app: { labels } } }), "swarm");
  assert.equal(engineNamedIn({ name: "shop", services: { app: { deploy: { labels } } } }), "swarm");
});

test("a file without a setting is a compose project", () => {
  assert.equal(engineNamedIn({ name: "shop", services }), "compose");
});

test("another engine is refused", () => {
  const model = { name: "shop", services, "x-hotpush": { engine: "kubernetes" } };
  assert.throws(() => engineNamedIn(model), /"kubernetes"/);
});

test("HOTPUSH_ENGINE decides, also if it is in .env beside the stack file", async (t) => {
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

test("compose only reads files that may name an engine", async (t) => {
  const projectDirectory = await temporary(t);
  await writeFile(join(projectDirectory, "docker"), "#!/bin/sh\ntouch asked\nexit 1\n", { mode: 0o755 });
  const env = { PATH: `${projectDirectory}:${process.env.PATH}` };
  const signal = new AbortController().signal;
  const isAsked = async (text: string, more: NodeJS.ProcessEnv = {}) => {
    await writeFile(join(projectDirectory, "compose.yaml"), text);
    await rm(join(projectDirectory, "asked"), { force: true });
    const target = { projectDirectory, files: [] };
    assert.equal(await chooseEngine({ target, signal, env: { ...env, ...more } }), "compose");
    return existsSync(join(projectDirectory, "asked"));
  };
  assert.equal(await isAsked("services: { app: { image: swarm, labels: { hotpush.check: a } } }"), false);
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
    assert.equal(await isAsked(text), true, text);
  }
  const variable = "services: { app: { labels: ['$LABEL'] } }";
  assert.equal(await isAsked(variable, { LABEL: "hotpush.engine=swarm" }), true);
  assert.equal(await isAsked(variable, { COMPOSE_ENV_FILES: "variables" }), true);
  await writeFile(join(projectDirectory, ".env"), "LABEL=hotpush.engine=swarm\n");
  assert.equal(await isAsked(variable), true);
  await rm(join(projectDirectory, ".env"));
  assert.equal(await isAsked("", { COMPOSE_FILE: "not-there.yaml" }), true, "compose reports the error");
});

test("without a file here, compose is asked: it looks in parent directories", async (t) => {
  assert.equal(mayNameEngine([], await temporary(t), {}), true);
});

async function temporary(t: { readonly after: (work: () => Promise<void>) => void }): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-stack-"));
  t.after(() => rm(directory, { recursive: true }));
  return directory;
}
