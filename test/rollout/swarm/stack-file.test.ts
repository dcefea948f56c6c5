import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { refuseMisreadVariables, stackFiles } from "../../../src/rollout/swarm/stack-file.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

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
  test(`refuses a message that docker stack reads as a default: ${line}`, (t) => {
    assert.throws(
      () => refuse(t, `services:\n  ${line}\n`),
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
  test(`accepts what both read the same way: ${line}`, (t) => {
    assert.doesNotThrow(() => refuse(t, `services:\n  ${line}\n`));
  });
}

function refuse(t: TestContext, text: string): void {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "stack.yaml"), text);
  refuseMisreadVariables(["stack.yaml"], directory);
}
