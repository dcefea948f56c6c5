import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { findProgram, replaceFile } from "../../src/platform/files.ts";
import { cutPower, fillDisk, mountDisk, mountTmpfs } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";
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

const plain = { mode: 0o644, owner: null };

test("the new text is there after a power cut", needs("mount", "ext4"), (t) => {
  const disk = mountDisk(t);
  writeFileSync(join(disk.path, "file"), "old", { flush: true });
  sync(disk.path);
  appendFileSync(join(disk.path, "other"), "that the disk has something to do");
  replaceFile(join(disk.path, "file"), "new", plain);
  assert.equal(
    cutPower(disk, (path) => readFileSync(join(path, "file"), "utf8")),
    "new",
  );
});

test("on a full disk the old text stays, and nothing is left beside it", needs("mount"), (t) => {
  const directory = mountTmpfs(t, 256 * 1024);
  const path = join(directory, "file");
  writeFileSync(path, "old");
  fillDisk(directory);
  const before = readdirSync(directory);
  assert.throws(() => replaceFile(path, "x".repeat(100_000), plain), { code: "ENOSPC" });
  assert.equal(readFileSync(path, "utf8"), "old");
  assert.deepEqual(readdirSync(directory), before);
});

for (const [mask, mode] of [
  [0o077, 0o755],
  [0, 0o600],
] as const) {
  test(`the mode is the requested one, even if the user's mask is ${mask.toString(8)}`, (t) => {
    const path = join(temporaryDirectory(t), "file");
    const before = process.umask(mask);
    t.after(() => process.umask(before));
    replaceFile(path, "text", { mode, owner: null });
    assert.equal(statSync(path).mode & 0o777, mode);
  });
}

test("root gives it to the owner that was asked for", needs("root"), (t) => {
  const path = join(temporaryDirectory(t), "file");
  replaceFile(path, "text", { mode: 0o600, owner: { uid: 12, gid: 34 } });
  const { uid, gid } = statSync(path);
  assert.deepEqual({ uid, gid }, { uid: 12, gid: 34 });
});

test("of a link, the link is replaced", (t) => {
  const directory = temporaryDirectory(t);
  const [path, target] = [join(directory, "file"), join(directory, "target")];
  writeFileSync(target, "old");
  symlinkSync(target, path);
  replaceFile(path, "new", plain);
  assert.equal(lstatSync(path).isFile(), true);
  assert.equal(readFileSync(target, "utf8"), "old");
});

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
