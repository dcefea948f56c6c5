import assert from "node:assert/strict";
import { test } from "node:test";
import { maxLineChars, runCommand } from "../../src/platform/run-command.ts";

const sh = (script: string) => ["sh", "-c", script] as const;
const flood = "setsid sh -c 'head -c 60000000 /dev/zero | tr \"\\0\" x'";

test("a program that prints more than is asked for is killed, and only the beginning is kept", async () => {
  const ending = await runCommand({
    argv: sh(`${flood}; sleep 60`),
    timeoutMs: 50_000,
    maxOutputBytes: 1_000,
  });
  assert.ok(ending.kind === "too_long" && ending.output.length < 1_000_000);
});

test("output that nobody reads is drained, and a long line is cut", async () => {
  for (const script of [`${flood}; echo; echo last`, `${flood} >&2; echo >&2; echo last`]) {
    const lengths: number[] = [];
    const ending = await runCommand({
      argv: sh(script),
      timeoutMs: 50_000,
      maxOutputBytes: 0,
      onLine: (line) => lengths.push(line.length),
    });
    assert.deepEqual([ending.kind, lengths, ending.lastLines.at(-1)], ["exited", [maxLineChars, 4], "last"]);
  }
});

test("lines end as programs end them, also between two pieces", async () => {
  const lines: string[] = [];
  const ending = await runCommand({
    argv: sh("printf 'a\\r'; sleep 0.2; printf '\\nb\\rc\\n\\nd'"),
    timeoutMs: 5_000,
    onLine: (line) => lines.push(line),
  });
  assert.deepEqual(lines, ["a", "b", "c", "", "d"]);
  assert.equal(ending.kind === "exited" && ending.output, "a\nb\nc\n\nd");
});

test("a program that is not installed is an ending, not a fault", async () => {
  const ending = await runCommand({ argv: ["no-such-program"], timeoutMs: 1_000 });
  assert.deepEqual(ending, { kind: "not_found", lastLines: [] });
});
