import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Scope, temporaryDirectory } from "./temporary.ts";
import { until } from "./until.ts";

const diskBytes = 32 * 1024 ** 2;

type Disk = ReturnType<typeof mountDisk>;

/** A disk with readable bytes: a file in memory with a file system, mounted at `path`. */
export function mountDisk(scope: Scope) {
  const memory = mountTmpfs(scope, 3 * diskBytes);
  const imagePath = join(memory, "disk");
  const path = mountImage(scope, imagePath, diskBytes);
  return { imagePath, copyPath: join(memory, "disk-after-cut"), path };
}

/**
 * Simulates a power cut with a copy of the disk: the file has at this instant what a real disk would hold. `look` sees
 * the copy mounted, as after a reboot.
 */
export function cutPower<Result>(disk: Disk, look: (path: string) => Result): Result {
  writeFileSync(disk.copyPath, readAtOneInstant(disk.imagePath));
  const path = mount(["-o", "loop", disk.copyPath]);
  try {
    return look(path);
  } finally {
    unmount(path);
  }
}

/**
 * Simulates a power cut while processes work: they are stopped while the copy is taken. Otherwise the copy could hold
 * later writes without earlier ones, which does not happen on a disk that honours flushes.
 */
export async function cutPowerOf<Result>(
  disk: Disk,
  pids: readonly number[],
  look: (path: string) => Result,
): Promise<Result> {
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  try {
    const isStopped = (pid: number) => threadStates(pid).every((state) => state === "T");
    await until("the processes are stopped", () => pids.every(isStopped));
    return cutPower(disk, look);
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
}

/** Two equal readings are consistent; before them, the kernel may still have been writing. */
function readAtOneInstant(path: string): Buffer {
  for (let before = readFileSync(path); ; ) {
    const after = readFileSync(path);
    if (before.equals(after)) return after;
    before = after;
  }
}

/** The state of each thread of a process, as in proc(5); T: stopped. */
function threadStates(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  });
}

/** Mounts a file system in memory of `sizeBytes` until the test ends. @returns its path */
export function mountTmpfs(scope: Scope, sizeBytes: number): string {
  return mountForTest(scope, ["-t", "tmpfs", "-o", `size=${sizeBytes}`, "tmpfs"]);
}

/**
 * Makes a file that holds an empty ext4, and mounts it until the test ends. Its blocks have 4 KiB, as on all but the smallest
 * disks. (With smaller ones, SQLite's mapped memory finds no room on a full disk, and the kernel ends the process with SIGBUS.)
 * @returns where it is mounted
 */
export function mountImage(scope: Scope, path: string, sizeBytes: number): string {
  writeFileSync(path, "");
  truncateSync(path, sizeBytes);
  execFileSync("mkfs.ext4", ["-q", "-F", "-b", "4096", "-m", "0", "-J", "size=4", path]);
  return mountForTest(scope, ["-o", "loop", path]);
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

/** Runs the commands before `--`, each an argument, and then the command line after it. */
const runAll =
  'for command; do [ "$command" = -- ] && break; sh -c "$command" >&2; shift; done; shift; exec "$@"';

/**
 * A prefix that runs `commands` first, and then a command line, with mounts of its own and a copy of /etc. Changes to
 * packages, services or groups disappear afterwards, and the machine stays the same.
 */
export function inOwnEtc(scope: Scope, commands: readonly string[]): readonly string[] {
  const copy = join(temporaryDirectory(scope), "etc");
  mkdirSync(copy);
  // Without the server that may be set up here.
  const files = readdirSync("/etc").filter((name) => name !== "hotpush");
  execFileSync("cp", ["-a", ...files.map((name) => `/etc/${name}`), copy]);
  const script = `set -e; mount --bind ${copy} /etc; ${runAll}`;
  return ["unshare", "--mount", "sh", "-c", script, "sh", ...commands, "--"];
}
