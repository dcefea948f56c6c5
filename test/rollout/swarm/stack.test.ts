import "../../harness/environment.ts";
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { ComposeService } from "../../../src/platform/compose-model.ts";
import {
  chooseEngine,
  engineNamedIn,
  readStack,
  refuseMisreadVariables,
  stackFiles,
} from "../../../src/rollout/swarm/stack.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

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

test("compose only reads files that may name an engine", async (t) => {
  const projectDirectory = temporaryDirectory(t);
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
    "services:\n  app:\n    label_file: labels",
    "services:\n  app:\n    extends: web",
    "include: [more.yaml]",
    "x-hotpush: { engine: swarm }",
  ]) {
    assert.equal(await isAsked(text), true, text);
  }
  assert.equal(await isAsked("", { COMPOSE_FILE: "not-there.yaml" }), true, "compose reports the error");
});

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

for (const line of [
  `S: \${SECRET:?run openssl rand -hex 32}`,
  `S: "\${SECRET?no-thing}"`,
  `S: a\${B:-c}\${SECRET:?d-e}`,
  `S: "\${SECRET?x # y-z}"`,
  `S: "\${SECRET?x\n    y-z}"`,
  `S: \${SECRET-a:-b}`,
  `S: $$\${SECRET:?a-b}`,
]) {
  test(`refuses a message that docker stack reads as a default: ${line}`, () => {
    assert.throws(
      () => refuseMisreadVariables("stack.yaml", `services:\n  ${line}\n`),
      /stack\.yaml, line 2: docker stack deploy would take .* to be the value of SECRET/,
    );
  });
}

for (const line of [
  `S: \${SECRET:?write it to .env}`,
  `S: \${SECRET:-a-default?}`,
  `# S: \${SECRET:?a-b}`,
  `S: $\${S?-}`,
  `S: \${S-a-b}`,
]) {
  test(`accepts what both read the same way: ${line}`, () => {
    assert.doesNotThrow(() => refuseMisreadVariables("stack.yaml", `services:\n  ${line}\n`));
  });
}

function policyOf(said: ComposeService) {
  const services = { app: { image: "app", build: {}, ...said } };
  const [service] = readStack({ name: "shop", services }).services;
  if (!service) throw new Error("The stack has no service.");
  return service.update;
}

test("order and failure_action in the file win, with a warning if they are risky", () => {
  const { order, added, warnings } = policyOf({
    deploy: { update_config: { order: "stop-first", failure_action: "pause" } },
  });
  assert.equal(order, "stop-first");
  assert.deepEqual(added.update_config, { order: "stop-first", failure_action: "pause" });
  assert.equal(warnings.length, 2);
});

test("the file's start-first and rollback give no warning", () => {
  const update_config = { order: "start-first", failure_action: "rollback" };
  assert.deepEqual(policyOf({ deploy: { update_config } }).warnings, []);
});

test("failure_action continue is refused: it would let a broken version serve", () => {
  assert.throws(
    () => policyOf({ deploy: { update_config: { failure_action: "continue" } } }),
    isProblem("compose_invalid"),
  );
});

test("a service with a host port is left as in the file: it cannot run twice", () => {
  const { order, added } = policyOf({ ports: [{ published: "80", target: 80, mode: "host" }] });
  assert.equal(order, "stop-first");
  assert.deepEqual(added, {});
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
    policyOf({ labels, deploy: { replicas: 4, update_config: { parallelism, monitor: "1s" } } }).timeoutMs;
  assert.deepEqual([timeoutMs(1), timeoutMs(2), timeoutMs(0)], [61_000, 31_000, 16_000]);
});

test("with stop-first, each round also waits for the old task to stop", () => {
  const labels = { "hotpush.healthy-timeout": "10s" };
  const update_config = { order: "stop-first", monitor: "1s" };
  assert.equal(policyOf({ labels, stop_grace_period: "30s", deploy: { update_config } }).timeoutMs, 46_000);
});

test("an image from a registry gets two more minutes to reach a node", () => {
  assert.equal(policyOf({ image: "ghcr.io/shop/app" }).timeoutMs - policyOf({}).timeoutMs, 120_000);
});
