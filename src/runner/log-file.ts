import {
  closeSync,
  createReadStream,
  createWriteStream,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";

/** The log of one deployment: its beginning and its end are kept, what is too much in the middle is left out. */
export interface LogFile {
  /** Writes output as it comes. A full disk costs lines of the log, never the deployment. */
  readonly write: (chunk: Buffer) => void;
  /** Puts beginning and end together in the one file that stays. */
  readonly close: () => Promise<void>;
}

export const headBytes = 1024 ** 2;
export const tailBytes = 9 * 1024 ** 2;

/**
 * Opens the log at `path`, or makes it, and goes on where an earlier attempt or an earlier service stopped. What goes
 * past the head is written to two files in turn, each of half a tail, so that the newest output is on disk at any
 * moment and never takes more than its share.
 */
export function openLogFile(path: string, limits = { headBytes, tailBytes }): LogFile {
  const halfBytes = Math.floor(limits.tailBytes / 2);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let leftOutBytes = setTailApart(path, limits.headBytes, halfBytes);
  const head = openSync(path, "a", 0o600);
  let remainingHead = Math.max(0, limits.headBytes - sizeOf(path));
  let half = sizeOf(newerPath(path)) > 0 ? openHalf("a") : null;

  function openHalf(flags: "a" | "w"): { readonly fd: number; bytes: number } {
    return {
      fd: openSync(newerPath(path), flags, 0o600),
      bytes: flags === "a" ? sizeOf(newerPath(path)) : 0,
    };
  }

  function turnOver(): { readonly fd: number; bytes: number } {
    if (half) {
      const { fd } = half;
      half = null;
      closeSync(fd);
      leftOutBytes += sizeOf(olderPath(path));
      renameSync(newerPath(path), olderPath(path));
    }
    half = openHalf("w");
    return half;
  }

  function appendToTail(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      const current = half && half.bytes < halfBytes ? half : turnOver();
      const part = rest.subarray(0, halfBytes - current.bytes);
      append(current.fd, part);
      current.bytes += part.length;
      rest = rest.subarray(part.length);
    }
  }

  return {
    write(chunk) {
      const headPart = chunk.subarray(0, remainingHead);
      remainingHead -= headPart.length;
      try {
        if (headPart.length > 0) append(head, headPart);
        if (headPart.length < chunk.length) appendToTail(chunk.subarray(headPart.length));
      } catch {
        leftOutBytes += chunk.length;
      }
    },
    async close() {
      if (half) closeSync(half.fd);
      try {
        if (leftOutBytes > 0) append(head, Buffer.from(`\n[${leftOutBytes} bytes left out here]\n`));
        await joinTail(path);
      } catch {
        // The tail stays beside the log, in two files.
      } finally {
        closeSync(head);
      }
    },
  };
}

function append(fd: number, bytes: Buffer): void {
  let offset = 0;
  while (offset < bytes.length) offset += writeSync(fd, bytes, offset);
}

/** What an earlier attempt wrote past the head becomes the older half of the tail. @returns how much of it is left out */
function setTailApart(path: string, headEnd: number, halfBytes: number): number {
  const size = sizeOf(path);
  if (size <= headEnd) return 0;
  const tail = readFileSync(path).subarray(headEnd).subarray(-halfBytes);
  writeFileSync(olderPath(path), tail, { mode: 0o600 });
  truncateSync(path, headEnd);
  return size - headEnd - tail.length;
}

async function joinTail(path: string): Promise<void> {
  for (const part of [olderPath(path), newerPath(path)]) {
    if (sizeOf(part) > 0) await pipeline(createReadStream(part), createWriteStream(path, { flags: "a" }));
    rmSync(part, { force: true });
  }
}

function olderPath(path: string): string {
  return `${path}.tail-1`;
}

function newerPath(path: string): string {
  return `${path}.tail-2`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
