import "../harness/environment.ts";
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import type { ComposeService } from "../../src/platform/compose.ts";
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

test("x-hotpush in the file names the engine", async (t) => {
  assert.equal(await engineOf(t, "services: { app: { image: swarm } }"), "compose");
  assert.equal(await engineOf(t, "x-hotpush: { engine: swarm }"), "swarm");
  assert.equal(await engineOf(t, "x-hotpush: { stack: shop }"), "compose");
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

test("an update starts the new task first, unless the file or two tasks speak against it", () => {
  const { order, deploy } = policyOf({
    deploy: { update_config: { order: "stop-first", failure_action: "pause" } },
  });
  assert.deepEqual(deploy?.update_config, { order, failure_action: "pause" });
  const port = (mode: string) => policyOf({ ports: [{ published: "80", target: 80, mode }] });
  const labelled = policyOf({ deploy: { labels: { "hotpush.rollout": "recreate" } } });
  const orders = [order, port("ingress").order, port("host").order, labelled.order];
  assert.deepEqual(orders, ["stop-first", "start-first", "stop-first", "stop-first"]);
  assert.equal(port("host").deploy, undefined);
  const goesOn = { deploy: { update_config: { failure_action: "continue" } } };
  assert.throws(() => policyOf(goesOn), isProblem("compose_invalid"), "a broken version would serve");
});

test("the time-out grows with the rounds of an update, stop-first and a registry", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const timeoutMs = (parallelism: number) =>
    policyOf({ labels, deploy: { replicas: 4, update_config: { parallelism, monitor: "1s" } } })
      .updateTimeoutMs;
  assert.deepEqual([timeoutMs(1), timeoutMs(2), timeoutMs(0)], [61_000, 31_000, 16_000]);
  const update_config = { order: "stop-first", monitor: "1s" } as const;
  const stopping = policyOf({ labels, stop_grace_period: "30s", deploy: { update_config } });
  assert.equal(stopping.updateTimeoutMs, 46_000);
  const pulled = policyOf({ image: "ghcr.io/shop/app" });
  assert.equal(pulled.updateTimeoutMs - policyOf({}).updateTimeoutMs, 120_000);
});
