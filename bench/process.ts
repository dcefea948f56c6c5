import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** The time that all threads of a process have spent on a processor. */
export function cpuMicroseconds(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [onProcessor] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return Number(onProcessor);
  });
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1_000;
}

/** Resets the peak memory of a process. */
export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}
