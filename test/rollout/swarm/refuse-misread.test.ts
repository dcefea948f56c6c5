import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { refuseMisread } from "../../../src/rollout/swarm/refuse-misread.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

for (const line of [
  `S: \${SECRET:?run openssl rand -hex 32}`,
  `S: "\${SECRET?no-thing}"`,
  `S: a\${B:-c}\${SECRET:?d-e}`,
  `S: "\${SECRET?x # y-z}"`,
  `S: "\${SECRET?x\n    y-z}"`,
  `S: \${SECRET-a:-b}`,
  `S: $$\${SECRET:?a-b}`,
]) {
  test(`a message that docker stack would take for a default is refused: ${line}`, (t) => {
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
  test(`read as it is meant, and let through: ${line}`, (t) => {
    assert.doesNotThrow(() => refuse(t, `services:\n  ${line}\n`));
  });
}

function refuse(t: TestContext, text: string): void {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, "stack.yaml"), text);
  refuseMisread(["stack.yaml"], directory);
}
