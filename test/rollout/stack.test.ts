import "../harness/environment.ts";
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import type { ComposeService } from "../../src/platform/compose-model.ts";
import { chooseEngine, readStack, stackFiles } from "../../src/rollout/stack.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

test("HOTPUSH_ENGINE decides, also if it is in .env beside the stack file", async (t) => {
  const directory = temporaryDirectory(t);
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

for (const [text, engine] of [
  ["services: { app: { image: swarm } }", "compose"],
  ["x-hotpush: { engine: swarm }", "swarm"],
  ["x-hotpush: { stack: shop }", "compose"],
] as const) {
  test(`the engine of a file is ${engine}: ${text}`, async (t) => {
    assert.equal(await engineOf(t, text), engine);
  });
}

test("another engine is refused", async (t) => {
  await assert.rejects(engineOf(t, "x-hotpush: { engine: nomad }"), isProblem("compose_invalid", /"nomad"/));
});

/** The engine of a project with this compose file, which compose reads. */
async function engineOf(t: TestContext, text: string): Promise<string> {
  const projectDirectory = temporaryDirectory(t);
  writeFileSync(join(projectDirectory, "compose.yaml"), text);
  const model = JSON.stringify({ name: "shop", services: {}, ...parse(text) });
  writeScript(join(projectDirectory, "docker"), `#!/bin/sh\necho '${model}'\n`);
  const env = { PATH: `${projectDirectory}:${process.env.PATH}` };
  const { signal } = new AbortController();
  return chooseEngine({ target: { projectDirectory, files: [] }, signal, env });
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

function policyOf(said: ComposeService) {
  const services = { app: { image: "app", build: {}, ...said } };
  const [service] = readStack({ name: "shop", services }).services;
  if (!service) throw new Error("The stack has no service.");
  return service;
}

test("order and failure_action in the file win", () => {
  const { order, deploy } = policyOf({
    deploy: { update_config: { order: "stop-first", failure_action: "pause" } },
  });
  assert.equal(order, "stop-first");
  assert.deepEqual(deploy?.update_config, { order: "stop-first", failure_action: "pause" });
});

test("failure_action continue is refused: it would let a broken version serve", () => {
  assert.throws(
    () => policyOf({ deploy: { update_config: { failure_action: "continue" } } }),
    isProblem("compose_invalid"),
  );
});

test("a service with a host port is left as in the file: it cannot run twice", () => {
  const { order, deploy } = policyOf({ ports: [{ published: "80", target: 80, mode: "host" }] });
  assert.equal(order, "stop-first");
  assert.equal(deploy, undefined);
});

test("a port that Swarm shares does not keep a second task from running", () => {
  assert.equal(policyOf({ ports: [{ published: "80", target: 80, mode: "ingress" }] }).order, "start-first");
});

test("the label hotpush.rollout=recreate counts in the deploy section too", () => {
  assert.equal(policyOf({ deploy: { labels: { "hotpush.rollout": "recreate" } } }).order, "stop-first");
});

test("the time-out grows with the rounds that the update takes", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const timeoutMs = (parallelism: number) =>
    policyOf({ labels, deploy: { replicas: 4, update_config: { parallelism, monitor: "1s" } } })
      .updateTimeoutMs;
  assert.deepEqual([timeoutMs(1), timeoutMs(2), timeoutMs(0)], [61_000, 31_000, 16_000]);
});

test("with stop-first, each round also waits for the old task to stop", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const update_config = { order: "stop-first", monitor: "1s" };
  assert.equal(
    policyOf({ labels, stop_grace_period: "30s", deploy: { update_config } }).updateTimeoutMs,
    46_000,
  );
});

test("an image from a registry gets two more minutes to reach a node", () => {
  assert.equal(
    policyOf({ image: "ghcr.io/shop/app" }).updateTimeoutMs - policyOf({}).updateTimeoutMs,
    120_000,
  );
});
