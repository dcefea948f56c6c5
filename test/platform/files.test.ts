import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findProgram } from "../../src/platform/files.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("the first program of the name is found, as the system finds it", (t) => {
  const { directory, place } = directories(t);
  const second = place("second");
  place("third");
  const searchPath = ["first", "second", "third"].map((name) => join(directory, name)).join(delimiter);
  assert.equal(findProgram("tool", searchPath), second);
  assert.equal(runs(searchPath), true);
});

test("skips directories, and files that may not be run", (t) => {
  const { directory, place } = directories(t);
  chmodSync(place("first"), 0o644);
  mkdirSync(join(directory, "second", "tool"), { recursive: true });
  const third = place("third");
  const searchPath = ["first", "second", "third"].map((name) => join(directory, name)).join(delimiter);
  assert.equal(findProgram("tool", searchPath), third);
  assert.equal(runs(searchPath), true);
});

test("a missing program is null, even if PATH names a file as a directory", (t) => {
  const { directory } = directories(t);
  const searchPath = [directory, "/bin/sh"].join(delimiter);
  assert.equal(findProgram("tool", searchPath), null);
  assert.equal(runs(searchPath), false);
});

test("an empty directory is the working directory", (t) => {
  const { directory, place } = directories(t);
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(dirname(place("first")));
  const searchPath = `${directory}${delimiter}`;
  assert.equal(findProgram("tool", searchPath), "tool");
  assert.equal(runs(searchPath), true);
});

function directories(t: TestContext) {
  const directory = temporaryDirectory(t);
  const place = (name: string) => {
    const path = join(directory, name, "tool");
    mkdirSync(join(directory, name), { recursive: true });
    copyFileSync("/bin/true", path);
    return path;
  };
  return { directory, place };
}

/** Whether the system finds it, too. */
function runs(searchPath: string): boolean {
  try {
    execFileSync("tool", { env: { PATH: searchPath } });
    return true;
  } catch {
    return false;
  }
}
