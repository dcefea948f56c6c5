import { readFileSync } from "node:fs";

/** The current and the peak memory of a process, as counted by Linux. */
export function memoryOf(pid: number | undefined): { residentBytes: number; peakBytes: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const bytesOf = (name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  return { residentBytes: bytesOf("VmRSS"), peakBytes: bytesOf("VmHWM") };
}

/** What a process takes of the machine's memory: of what it shares with others, only its part. */
export function proportionalBytesOf(pid: number | undefined): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1]) * 1024;
}
