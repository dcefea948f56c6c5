import {
  closeSync,
  constants,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { SystemUser } from "../platform/users.ts";
import { checkDeployLogDirectory, deployLogDirectory } from "./environment.ts";
import { dropLogTimes } from "./log-times.ts";

/** The log of one deployment. It keeps the beginning and the end; if it is too long, the middle is left out. */
export interface LogFile {
  /** Writes output as it arrives. A full disk costs lines of the log, never the deployment. */
  readonly write: (chunk: Buffer) => void;
  /** Joins beginning and end in one file. */
  readonly close: () => Promise<void>;
}

/** The path of the log that the service keeps of a deployment's output. */
export function logPath(statePath: string, deploymentId: number): string {
  return join(statePath, "logs", `${deploymentId}.log`);
}

/** The files of a log in the order of their content; while a deployment runs, the end is in two files of its own. */
export function logFiles(statePath: string, deploymentId: number): readonly string[] {
  const path = logPath(statePath, deploymentId);
  return [path, olderPath(path), newerPath(path)];
}

/** How many bytes of the log at `path` are there: less than were printed if its middle is left out. */
export function logBytes(path: string): number {
  return [path, olderPath(path), newerPath(path)].reduce((sum, part) => sum + sizeOf(part), 0);
}

const logName = /^(\d{1,15})\.log(?:\.tail-[12]|\.times)?$/;

/** The highest number of a deployment that has a log, 0 if none has. */
export function lastLoggedId(statePath: string): number {
  const directory = join(statePath, "logs");
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.reduce((last, name) => Math.max(last, Number(logName.exec(name)?.[1] ?? 0)), 0);
}

const logsKept = 50;

/** Removes the oldest logs of the service and of the scripts if there are more than 50. */
export function pruneLogs(statePath: string, user: SystemUser | null): void {
  pruneDirectory(join(statePath, "logs"), logName);
  if (checkDeployLogDirectory(user) === null) pruneScriptLogs(user);
}

/** Through a descriptor: a user could put a link in place of the directory meanwhile. */
function pruneScriptLogs(user: SystemUser | null): void {
  const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
  const fd = openSync(deployLogDirectory(user), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    pruneDirectory(`/proc/self/fd/${fd}`, /^deploy-(\d+)\.log$/);
  } finally {
    closeSync(fd);
  }
}

function pruneDirectory(directory: string, pattern: RegExp): void {
  if (!existsSync(directory)) return;
  const idOf = (name: string) => Number(pattern.exec(name)?.[1] ?? Number.NaN);
  const names = readdirSync(directory).filter((name) => pattern.test(name));
  const ids = [...new Set(names.map(idOf))].sort((one, other) => other - one);
  const oldestKept = ids[logsKept - 1] ?? 0;
  for (const name of names) if (idOf(name) < oldestKept) rmSync(join(directory, name), { force: true });
}

export const headBytes = 1024 ** 2;
export const tailBytes = 9 * 1024 ** 2;

/**
 * Opens or creates the log at `path`, and continues after what an earlier attempt or service wrote. Output after the head
 * goes to two files in turn, each half a tail long, so that the newest output is always on disk and its size is bounded.
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
        if (leftOutBytes > 0) {
          append(head, Buffer.from(`\n[${leftOutBytes} bytes left out here]\n`));
          dropLogTimes(path);
        }
        await joinTail(path);
      } catch {
        // The tail stays in two files beside the log.
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

/** Makes what an earlier attempt wrote after the head the older half of the tail. @returns how many bytes are left out */
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
