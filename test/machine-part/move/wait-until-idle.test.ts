import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { waitUntilIdle } from "../../../src/machine-part/move/wait-until-idle.ts";
import type { Container } from "../../../src/platform/docker/container.ts";
import { type Scope, temporaryDirectory, writeScript } from "../../harness/temporary.ts";

const container = { id: "abc" } as Container;

test("waits as long as a deployment runs, and says which one once", async (t) => {
  const env = dockerThat(
    t,
    `[ "$*" = "exec abc hotpush status --json" ] || exit 1
    echo x >>asked
    [ "$(wc -l <asked)" -lt 3 ] && echo '{"running":{"deployment":{"id":7}}}' || echo '{"running":null}'`,
  );
  const waits: number[] = [];
  await waitUntilIdle(container, (id) => waits.push(id), env);
  assert.deepEqual(waits, [7]);
});

test("a Hotpush that cannot be asked counts as idle", async (t) => {
  const waits: number[] = [];
  for (const answer of ["exit 1", "echo nonsense"])
    await waitUntilIdle(container, (id) => waits.push(id), dockerThat(t, answer));
  assert.deepEqual(waits, []);
});

function dockerThat(scope: Scope, lines: string): NodeJS.ProcessEnv {
  const directory = temporaryDirectory(scope);
  writeScript(join(directory, "docker"), `#!/bin/sh\ncd ${directory}\n${lines}\n`);
  return { PATH: `${directory}:${process.env.PATH}` };
}
