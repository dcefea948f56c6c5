import { readdirSync, readFileSync, writeFileSync } from "node:fs";

/** The time that all threads of a process have spent on a processor. */
export function cpuMicroseconds(pid: number): number {
  const nanoseconds = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [onProcessor] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return Number(onProcessor);
  });
  return nanoseconds.reduce((sum, value) => sum + value, 0) / 1_000;
}

/** The memory of a process that is resident now. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, "VmRSS");
}

/** The most that was resident since the last call of `forgetPeak`. */
export function peakResidentBytes(pid: number): number {
  return statusBytes(pid, "VmHWM");
}

export function forgetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
}

function statusBytes(pid: number, field: string): number {
  const line = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) * 1024;
}
