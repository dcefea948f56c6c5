import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** The time that all threads of a process have spent on a processor. */
export function cpuMicroseconds(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [onProcessor] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return Number(onProcessor);
  });
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1_000;
}

/** The memory of some processes together. A page that they share, such as one of Node's program, counts once. */
export function bytesTogether(pids: readonly number[]): number {
  const all = pids.map((pid) => readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"));
  const own = all.map((text) => bytesIn(text, "Private"));
  return own.reduce((sum, value) => sum + value, 0) + Math.max(...all.map((text) => bytesIn(text, "Shared")));
}

function bytesIn(rollup: string, kind: "Private" | "Shared"): number {
  const lines = [...rollup.matchAll(new RegExp(`^${kind}_(?:Clean|Dirty):\\s+(\\d+) kB$`, "gm"))];
  return lines.reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * 1024, 0);
}

/** Resets the peak memory of a process. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
