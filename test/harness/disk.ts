import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeImage, mountImage, mountTmpfs, whileMounted } from "./mount.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

const diskBytes = 32 * 1024 ** 2;

/** A disk with readable bytes: a file in memory with a file system, mounted at `path`. */
export interface Disk {
  readonly path: string;
  readonly imagePath: string;
  readonly copyPath: string;
}

export function mountDisk(scope: Scope): Disk {
  const memory = mountTmpfs(scope, 3 * diskBytes);
  const imagePath = join(memory, "disk");
  makeImage(imagePath, diskBytes);
  return { imagePath, copyPath: join(memory, "disk-after-cut"), path: mountImage(scope, imagePath) };
}

/**
 * Simulates a power cut with a copy of the disk: the file has at this instant what a real disk would hold. `look` sees
 * the copy mounted, as after a reboot.
 */
export function cutPower<Result>(disk: Disk, look: (path: string) => Result): Result {
  writeFileSync(disk.copyPath, readAtOneInstant(disk.imagePath));
  return whileMounted(disk.copyPath, look);
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
    writeFileSync(disk.copyPath, readAtOneInstant(disk.imagePath));
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
  return whileMounted(disk.copyPath, look);
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
