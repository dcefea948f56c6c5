import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { findProgram, replaceFile } from "../../src/platform/files.ts";
import { cutPower, fillDisk, mountDisk, mountTmpfs } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a program is found as the system finds it: the first file that may be run", (t) => {
  const directory = temporaryDirectory(t);
  for (const name of ["closed", "first", "second"]) {
    mkdirSync(join(directory, name));
    copyFileSync("/bin/true", join(directory, name, "tool"));
  }
  chmodSync(join(directory, "closed/tool"), 0o644);
  mkdirSync(join(directory, "directory/tool"), { recursive: true });
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(join(directory, "second"));
  for (const [names, found] of [
    [["first", "second"], join(directory, "first/tool")],
    [["closed", "directory", "second"], join(directory, "second/tool")],
    [["closed", "second/tool"], null],
    [["closed", ""], "tool"],
  ] as const) {
    const searchPath = names.map((name) => name && join(directory, name)).join(delimiter);
    assert.equal(findProgram("tool", searchPath), found);
    assert.equal(spawnSync("tool", { env: { PATH: searchPath } }).status === 0, found !== null);
  }
});

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

function sync(path: string): void {
  const descriptor = openSync(path, "r");
  fsyncSync(descriptor);
  closeSync(descriptor);
}
