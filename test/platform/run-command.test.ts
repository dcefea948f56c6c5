import assert from "node:assert/strict";
import { test } from "node:test";
import { runCommand } from "../../src/platform/run-command.ts";

const sh = (script: string) => ["sh", "-c", script] as const;

test("a program that prints without an end is ended, and fills no memory", async () => {
  const flood = "setsid sh -c 'head -c 60000000 /dev/zero | tr \"\\0\" x' ; sleep 60";
  for (const script of [`${flood} >&2`, flood]) {
    let length = 0;
    const onLine = (line: string) => {
      length = Math.max(length, line.length);
    };
    const ending = await runCommand({ argv: sh(script), timeoutMs: 50_000, onLine });
    assert.deepEqual([ending.kind, length < 20_000_000], ["exited", true]);
    assert.ok(ending.kind === "exited" && ending.code !== 0);
  }
});

test("a program that is not installed is an ending, not a fault", async () => {
  const ending = await runCommand({ argv: ["no-such-program"], timeoutMs: 1_000 });
  assert.deepEqual(ending, { kind: "not_found", lastLines: [] });
});
