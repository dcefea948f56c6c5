import { closeSync, openSync, readSync } from "node:fs";

/** The first bytes of the file at `path`, at most `count` of them. @throws where it cannot be read */
export function readStart(path: string, count: number): Buffer {
  const descriptor = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(count);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, count, 0));
  } finally {
    closeSync(descriptor);
  }
}
