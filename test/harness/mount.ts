import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmdirSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scope } from "./temporary.ts";

/** Mounts a file system in memory of `sizeBytes` until the test ends. @returns its path */
export function mountTmpfs(scope: Scope, sizeBytes: number): string {
  return mountForTest(scope, ["-t", "tmpfs", "-o", `size=${sizeBytes}`, "tmpfs"]);
}

/**
 * Makes a file that holds an empty ext4, with blocks of 4 KiB, as on all but the smallest disks. (With smaller blocks,
 * SQLite's mapped memory finds no room on a full disk, and the kernel ends the process with SIGBUS.)
 */
export function makeImage(path: string, sizeBytes: number): void {
  writeFileSync(path, "");
  truncateSync(path, sizeBytes);
  execFileSync("mkfs.ext4", ["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", path]);
}

/** Mounts an image file until the test ends. @returns its path */
export function mountImage(scope: Scope, imagePath: string): string {
  return mountForTest(scope, ["-o", "loop", imagePath]);
}

/** Mounts an image file, as after a power cut, lets `look` read it, and unmounts it. */
export function whileMounted<Result>(imagePath: string, look: (path: string) => Result): Result {
  const path = mount(["-o", "loop", imagePath]);
  try {
    return look(path);
  } finally {
    unmount(path);
  }
}

/** Fills the disk under `directory` to the last byte with the file `ballast`. */
export function fillDisk(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const descriptor = openSync(join(directory, "ballast"), "a");
  for (const bytes of [1024 ** 2, 4096, 1]) {
    try {
      for (;;) writeSync(descriptor, Buffer.alloc(bytes));
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
    }
  }
  closeSync(descriptor);
}

/** Remounts the disk at `path` read-only, or writable again. */
export function remount(path: string, mode: "ro" | "rw"): void {
  execFileSync("mount", ["-o", `remount,${mode}`, path]);
}

function mountForTest(scope: Scope, args: readonly string[]): string {
  const path = mount(args);
  scope.after(() => unmount(path));
  return path;
}

function mount(args: readonly string[]): string {
  const path = mkdtempSync(join(tmpdir(), "hotpush-test-"));
  execFileSync("mount", [...args, path]);
  return path;
}

/** Unmounts lazily, because a service that is being killed may still have a file open. */
function unmount(path: string): void {
  execFileSync("umount", ["--lazy", path]);
  rmdirSync(path);
}
