import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { SystemUser } from "#platform/users";
import { checkDeployLogDirectory, deployLogDirectory } from "./environment.ts";

/*
 * The log of a deployment is one file, to which lines `<time> <text>` are only added: a time of ISO 8601, 24 characters,
 * then a blank. So each place of a byte in it stays what it is, and
 * whoever has read up to one goes on there.
 */

/** The path of the log that the service keeps of a deployment's output. */
export function logPath(statePath: string, deploymentId: number): string {
  return join(statePath, "logs", `${deploymentId}.log`);
}

/** How many bytes the log at `path` has, 0 if there is none. */
export function logBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

const logName = /^(\d{1,15})\.log$/;

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

/** Writes the log of one deployment. A full disk costs lines of the log, never the deployment. */
export interface LogWriter {
  /** Adds a line without its line feed; it is on disk after `flush`. */
  readonly add: (line: Buffer) => void;
  /** Writes the lines that were added, with the time at which they were printed. */
  readonly flush: (printedAtMs: number) => void;
  /** Writes the end of a log that is too long. */
  readonly close: () => void;
}

const mebibyte = 1024 ** 2;

/** What is kept of a log that is too long: the first part on disk, and in memory, until it is closed, half of the last part to all. */
export const logLimits = { firstBytes: 15 * mebibyte, lastBytes: mebibyte } as const;

/** Opens or creates the log at `path`, and goes on after what an earlier attempt or service wrote. */
export function openLog(
  path: string,
  { firstBytes, lastBytes }: { firstBytes: number; lastBytes: number } = logLimits,
): LogWriter {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fd = openSync(path, "a+", 0o600);
  /** As bytes in a text, which is quicker than thousands of small buffers. */
  let added: string[] = [];
  let size = fstatSync(fd).size;
  let isFull = size >= firstBytes;
  let isTorn = size > 0 && !endsWithLine(fd, size);
  let older: readonly Buffer[] = [];
  let newer: Buffer[] = [];
  let [olderBytes, newerBytes, leftOutBytes] = [0, 0, 0];

  function append(bytes: Buffer): void {
    const whole = isTorn ? Buffer.concat([newline, bytes]) : bytes;
    isTorn = true;
    for (let offset = 0; offset < whole.length; ) offset += writeSync(fd, whole, offset);
    isTorn = false;
    size += whole.length;
  }

  /** Of the lines that no room is left for, the newest half takes the place of the older one. */
  function keep(lines: Buffer): void {
    newer.push(lines);
    newerBytes += lines.length;
    if (newerBytes < lastBytes / 2) return;
    leftOutBytes += olderBytes;
    [older, olderBytes, newer, newerBytes] = [newer, newerBytes, [], 0];
  }

  return {
    add(line) {
      added.push(` ${line.toString("latin1")}\n`);
    },
    flush(printedAtMs) {
      if (added.length === 0) return;
      const time = new Date(printedAtMs).toISOString();
      const lines = Buffer.from(added.map((line) => `${time}${line}`).join(""), "latin1");
      added = [];
      if (isFull) return keep(lines);
      try {
        append(lines);
      } catch {
        leftOutBytes += lines.length;
      }
      isFull = size >= firstBytes;
    },
    close() {
      const note = `${new Date().toISOString()} [${leftOutBytes} bytes left out here]\n`;
      try {
        append(Buffer.concat([Buffer.from(leftOutBytes > 0 ? note : ""), ...older, ...newer]));
      } catch {
        // The log of the service has the lines.
      } finally {
        closeSync(fd);
      }
    },
  };
}

const newline = Buffer.from("\n");
const lineFeed = 0x0a;

function endsWithLine(fd: number, size: number): boolean {
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, size - 1);
  return byte.equals(newline);
}

/** A line of a log. */
export interface LogLine {
  readonly text: string;
  /** null: the line has none. */
  readonly printedAtMs: number | null;
  readonly startByte: number;
  /** The place of the byte after it. */
  readonly endByte: number;
}

const pieceBytes = 64 * 1024;

/**
 * Reads whole lines of the log at `path`, some at a time: those that begin at `fromByte` or after it and before `toByte`. The
 * log is read when the next lines are asked for, so that a slow reader costs no memory. Without a log there are none.
 */
export function* readLog(
  path: string,
  fromByte = 0,
  toByte = Number.MAX_SAFE_INTEGER,
): Generator<readonly LogLine[], void, void> {
  const fd = openIfThere(path);
  if (fd === null) return;
  try {
    const buffer = Buffer.allocUnsafe(pieceBytes);
    let place = fromByte > 0 ? lineAfter(fd, fromByte - 1) : 0;
    while (place < toByte) {
      const bytes = buffer.subarray(0, readSync(fd, buffer, 0, pieceBytes, place));
      const lines = linesIn(bytes, place, toByte);
      if (lines.length === 0) return;
      place = lines.at(-1)?.endByte ?? toByte;
      yield lines;
    }
  } finally {
    closeSync(fd);
  }
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The place after the first line feed at `place` or after it. */
function lineAfter(fd: number, place: number): number {
  const buffer = Buffer.allocUnsafe(pieceBytes);
  for (let at = place; ; at += pieceBytes) {
    const bytes = buffer.subarray(0, readSync(fd, buffer, 0, pieceBytes, at));
    const end = bytes.indexOf(lineFeed);
    if (end !== -1) return at + end + 1;
    if (bytes.length < pieceBytes) return Number.MAX_SAFE_INTEGER;
  }
}

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) /;

function linesIn(bytes: Buffer, place: number, toByte: number): readonly LogLine[] {
  const lines: LogLine[] = [];
  let from = 0;
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
    if (place + from >= toByte) break;
    const whole = lineText(bytes.subarray(from, end));
    const [head = "", time] = timed.exec(whole) ?? [];
    lines.push({
      startByte: place + from,
      endByte: place + end + 1,
      text: whole.slice(head.length),
      printedAtMs: time === undefined ? null : Date.parse(time),
    });
    from = end + 1;
  }
  return lines;
}

/** The last lines of the log at `path`, of at most `mostBytes`. */
export function readLastLines(path: string, mostBytes: number): readonly string[] {
  return [...readLog(path, logBytes(path) - mostBytes)].flat().map(({ text }) => text);
}

/** Some lines of a log, for a reader who turns its pages. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  /** The number of the first one in the log. */
  readonly firstNumber: number;
  /** Where the page before this one and the one after it end; null: there is none. */
  readonly before: number | null;
  readonly after: number | null;
}

const pageBytes = 32 * 1024;

/** Reads the page of the log at `path` that ends at `toByte`, by default the last one. */
export function readLogPage(path: string, toByte = logBytes(path)): LogPage {
  const lines = [...readLog(path, toByte - pageBytes, toByte)].flat();
  const startByte = lines[0]?.startByte ?? 0;
  const endByte = lines.at(-1)?.endByte ?? 0;
  return {
    lines,
    firstNumber: startByte > 0 ? countLines(path, startByte) + 1 : 1,
    before: startByte > 0 ? startByte : null,
    after: endByte < logBytes(path) ? endByte + pageBytes : null,
  };
}

/** How many lines the log at `path` has before `toByte`. */
function countLines(path: string, toByte: number): number {
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(pieceBytes);
    let count = 0;
    for (let place = 0; place < toByte; ) {
      const bytes = buffer.subarray(0, readSync(fd, buffer, 0, Math.min(pieceBytes, toByte - place), place));
      if (bytes.length === 0) break;
      for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count += 1;
      place += bytes.length;
    }
    return count;
  } finally {
    closeSync(fd);
  }
}

/** The most bytes of a line that are passed on at once; the rest follows as a piece of its own. */
export const longestLine = 8_192;

/** Cuts a stream of bytes into lines. */
export interface LineCutter {
  readonly push: (chunk: Buffer) => void;
  /** Passes on the rest, which has no line end. */
  readonly finish: () => void;
}

/** @param onLine gets each line without its line feed; one that is too long in pieces, as lines of their own */
export function createLineCutter(onLine: (line: Buffer) => void): LineCutter {
  let rest: Buffer = Buffer.alloc(0);

  /** @returns the rest, which is not too long */
  function passPieces(bytes: Buffer): Buffer {
    let from = 0;
    for (; bytes.length - from > longestLine; from += longestLine)
      onLine(bytes.subarray(from, from + longestLine));
    return bytes.subarray(from);
  }

  return {
    push(chunk) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
        onLine(passPieces(bytes.subarray(from, end)));
        from = end + 1;
      }
      // A copy: a small rest must not keep a large chunk.
      rest = Buffer.from(passPieces(bytes.subarray(from)));
    },
    finish() {
      if (rest.length > 0) onLine(rest);
      rest = Buffer.alloc(0);
    },
  };
}

/** A line as text, without the carriage return of Windows. Bytes that are no UTF-8 are replaced. */
export function lineText(line: Buffer): string {
  const text = line.toString("utf8");
  return text.endsWith("\r") ? text.slice(0, -1) : text;
}

/** The name of the step that a line announces, such as `Build` in `==> Build`, or null. */
export function stepOf(line: string): string | null {
  return /^==> (\S.{0,199})$/.exec(line.trimEnd())?.[1] ?? null;
}
