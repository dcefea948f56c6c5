import { readFile } from "node:fs/promises";

/** In bytes. On a system that does not say, there is no end to it. */
export interface FreeMemory {
  /** What processes can have before anything is swapped out. */
  readonly availableBytes: number;
  readonly swapBytes: number;
}

/** Reads what is free on this machine; in a container too, because `/proc/meminfo` is that of the machine. */
export async function readFreeMemory(path: string = "/proc/meminfo"): Promise<FreeMemory> {
  const text = await readFile(path, "utf8").catch(() => "");
  const bytesOf = (name: string) => {
    const [, kib] = new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text) ?? [];
    return kib === undefined ? Number.POSITIVE_INFINITY : Number(kib) * 1_024;
  };
  return { availableBytes: bytesOf("MemAvailable"), swapBytes: bytesOf("SwapFree") };
}
