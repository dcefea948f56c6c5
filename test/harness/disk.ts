import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeImage, mountImage, mountTmpfs, whileMounted } from "./mount.ts";
import type { Scope } from "./temporary.ts";
import { until } from "./until.ts";

const diskBytes = 32 * 1024 ** 2;

/** A disk whose every byte we can see: a file in memory, with a file system on it that is mounted at `path`. */
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
 * Cuts the power, as far as a copy of the disk is concerned: what is in the file at this instant is what a real disk
 * would hold. `look` sees the copy mounted, as it would be when the machine is back.
 */
export function cutPower<Result>(disk: Disk, look: (path: string) => Result): Result {
  writeFileSync(disk.copyPath, readAtOneInstant(disk.imagePath));
  return whileMounted(disk.copyPath, look);
}

/**
 * Cuts the power while process `pid` is at work: it is held, wherever it is, while the copy is taken. A copy that took
 * a while would hold later writes without earlier ones, which no disk does that keeps to the order of its flushes.
 */
export async function cutPowerOf<Result>(
  disk: Disk,
  pid: number,
  look: (path: string) => Result,
): Promise<Result> {
  process.kill(pid, "SIGSTOP");
  try {
    await until("the process is held", () => threadStates(pid).every((state) => state === "T"));
    writeFileSync(disk.copyPath, readAtOneInstant(disk.imagePath));
  } finally {
    process.kill(pid, "SIGCONT");
  }
  return whileMounted(disk.copyPath, look);
}

/** Two readings that are alike say what the file was between them; the kernel may still have been writing before. */
function readAtOneInstant(path: string): Buffer {
  for (let before = readFileSync(path); ; ) {
    const after = readFileSync(path);
    if (before.equals(after)) return after;
    before = after;
  }
}

/** The letter that proc(5) gives each thread of a process; T: stopped. */
function threadStates(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  });
}
