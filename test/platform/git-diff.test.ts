import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { diffTexts } from "../../src/platform/git.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const cases: readonly (readonly [string, string])[] = [
  ["", "a\n"],
  ["a\nb\nc\n", "a\nB\nc\n"],
  ["a\n", ""],
  ["1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\nX\n3\n4\n5\n6\n7\n8\n9\n10\nY\n12\n13\n"],
  ["1\n2\n3\n4\n5\n6\n7\n8\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"],
];
const plain = { env: process.env };

test("a difference is one that git applies", async (t) => {
  for (const [before, after] of cases) {
    const path = join(temporaryDirectory(t), "file");
    writeFileSync(path, before);
    const input = `${await diffTexts("file", before, after, plain)}\n`;
    spawnSync("git", ["apply", "-p1", "-"], { input, cwd: join(path, "..") });
    assert.equal(readFileSync(path, "utf8"), after, input);
  }
});

test("a difference has no control sequences, and leaves no files behind", async (t) => {
  const { TMPDIR } = process.env;
  t.after(() => {
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
  });
  const directory = temporaryDirectory(t);
  process.env.TMPDIR = directory;
  const env = { ...process.env, GIT_EXTERNAL_DIFF: "false" };
  assert.equal((await diffTexts("a", "x\n", "y\n", { env }))?.includes("\u001b["), false);
  assert.deepEqual(readdirSync(directory), []);
});

test("without git there is no difference to show", async (t) => {
  const env = { PATH: temporaryDirectory(t) };
  assert.equal(await diffTexts("a", "x\n", "y\n", { env }), null);
});
