import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { replaceFile } from "../../src/platform/files.ts";
import { cutPower, fillDisk, mountDisk, mountTmpfs } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";

const plain = { mode: 0o644, owner: null };

test("the new text is there after a power cut", needs("mount", "ext4"), (t) => {
  const disk = mountDisk(t);
  writeFileSync(join(disk.path, "file"), "old");
  execFileSync("sync", ["--file-system", disk.path]);
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
