import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  writeSync,
} from "node:fs";
import { Socket } from "node:net";
import { dirname, join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redactor } from "#redaction";

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

/** What shows a person where a script was. */
export interface Printed {
  /** The step that began last; null if the script announced none. */
  readonly step: string | null;
  /** The last line that is not blank; null if there is none. */
  readonly lastLine: string | null;
}

/** Reads the rest of a script's output, then closes the log; called when the script has ended. */
export type FinishOutput = () => Promise<Printed>;

export interface OutputOptions {
  readonly pipePath: string;
  readonly logPath: string;
  /** All output passes through it. */
  readonly redactor: Redactor;
  /** Gets each line, redacted. */
  readonly onLine: (line: string) => void;
  readonly onStep: (name: string) => void;
  /** 0: never silent. */
  readonly silenceMs: number;
  /** Called when nothing was printed for `silenceMs`, and again after each further one. */
  readonly onSilence: (silentMs: number, printed: Printed) => void;
}

/** After the script's end, output of its remaining children may still arrive; this much silence ends the reading. */
const endSilenceMs = 200;
const longestDrainMs = 2_000;
/** Without O_NONBLOCK, opening a pipe waits for its other end. */
const readWithoutWaiting = constants.O_RDONLY | constants.O_NONBLOCK;
/** Each step is written to disk, so their number is bounded. */
const mostSteps = 100;
/** After this much output, lines go only to the log file. */
const mostStreamedBytes = 10 * 1024 ** 2;

/**
 * Reads a script's output from its named pipe to the log file and, line by line, to `onLine`. A slow reader makes the
 * script wait, as any pipe does, instead of using memory.
 */
export function openOutput(options: OutputOptions): FinishOutput {
  const fd = openSync(options.pipePath, readWithoutWaiting);
  try {
    if (!fstatSync(fd).isFIFO()) throw new Error(`${options.pipePath} is not a named pipe`);
    return readOutput(fd, options);
  } catch (error) {
    // When descriptors run out, none may leak.
    closeSync(fd);
    throw error;
  }
}

function readOutput(fd: number, options: OutputOptions): FinishOutput {
  const { logPath, redactor, silenceMs, onLine, onStep, onSilence } = options;
  const log = openLog(logPath);
  let lines: string[] = [];
  let step: string | null = null;
  let lastLine: string | null = null;
  let steps = 0;
  let streamedBytes = 0;
  let lastReadMs = performance.now();
  const cutter = createLineCutter((line) => lines.push(line), redactor);

  /** In this order: who is told of a line or a step finds it in the log. */
  function passOn(): void {
    log.write(lines, Date.now());
    for (const line of lines) noteLine(withoutReturn(line));
    lines = [];
  }

  function noteLine(line: string): void {
    if (line.trim() !== "") lastLine = line;
    const begun = steps < mostSteps ? stepOf(line) : null;
    if (begun !== null) {
      steps += 1;
      step = begun;
      onStep(begun);
    }
    streamedBytes += line.length + 1;
    if (streamedBytes <= mostStreamedBytes) onLine(line);
  }

  const reportSilence = () => onSilence(performance.now() - lastReadMs, { step, lastLine });
  const silence = silenceMs === 0 ? undefined : setInterval(reportSilence, silenceMs);
  const socket = new Socket({ fd, readable: true, writable: false });
  socket.on("data", (chunk: Buffer) => {
    lastReadMs = performance.now();
    silence?.refresh();
    cutter.push(chunk);
    passOn();
    // One chunk per turn of the event loop: a script that floods its output must not starve the rest of the service.
    socket.pause();
    setImmediate(() => socket.resume());
  });
  socket.on("error", () => socket.destroy());

  return async () => {
    clearInterval(silence);
    const startMs = performance.now();
    lastReadMs = startMs;
    const isOver = (nowMs: number) =>
      socket.closed || nowMs - lastReadMs >= endSilenceMs || nowMs - startMs >= longestDrainMs;
    while (!isOver(performance.now())) await sleep(endSilenceMs / 10);
    socket.destroy();
    cutter.finish();
    passOn();
    log.close();
    return { step, lastLine };
  };
}

/** The longest line, in characters; a longer one continues as a line of its own. */
export const longestLine = 8_192;
/** So much of a line without an end is held back. */
const mostHeld = 64 * 1024;

/**
 * Cuts a stream of bytes into lines. `finish` passes on the rest, which has no line end. Bytes that are no UTF-8 are replaced.
 *
 * @param onLine gets each line without its line feed; one that is too long in pieces, as lines of their own
 * @param redactor gets whole lines, or the beginning of one
 */
export function createLineCutter(
  onLine: (line: string) => void,
  redactor: Redactor = { text: (text) => text, beginning: (shown) => ({ shown, rest: "" }) },
) {
  const decoder = new StringDecoder("utf8");
  /** The redacted beginning of a line that is not passed on yet. */
  let begun = "";
  let rest = "";

  /** @returns the rest, which is no longer than a line may be */
  function passPieces(line: string): string {
    let from = 0;
    for (; line.length - from > longestLine; from += longestLine)
      onLine(line.slice(from, from + longestLine));
    return line.slice(from);
  }

  function passLines(text: string): void {
    for (const line of (begun + redactor.text(text)).split("\n")) onLine(passPieces(line));
    begun = "";
  }

  return {
    push(chunk: Buffer): void {
      rest += decoder.write(chunk);
      const end = rest.lastIndexOf("\n");
      if (end !== -1) passLines(rest.slice(0, end));
      rest = rest.slice(end + 1);
      if (rest.length <= mostHeld) return;
      const { shown, rest: held } = redactor.beginning(rest);
      begun = passPieces(begun + shown);
      rest = held;
    },
    finish(): void {
      rest += decoder.end();
      if (begun !== "" || rest !== "") passLines(rest);
      rest = "";
    },
  };
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** The name of the step that a line announces, such as `Build` in `==> Build`, or null. */
export function stepOf(line: string): string | null {
  return /^==> (\S.{0,199})$/.exec(line.trimEnd())?.[1] ?? null;
}

const mebibyte = 1024 ** 2;

/** What is kept of a log that is too long: the first part on disk, and in memory, until it is closed, the last. */
const logLimits = { firstBytes: 15 * mebibyte, lastBytes: mebibyte };

/**
 * Opens or creates the log of a deployment at `path`, and goes on after what an earlier attempt or service wrote. A full disk costs
 * lines of the log, never the deployment.
 */
export function openLog(path: string, { firstBytes, lastBytes } = logLimits) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fd = openSync(path, "a+", 0o600);
  let size = fstatSync(fd).size;
  let isTorn = size > 0 && !endsWithLine(fd, size);
  const last: Buffer[] = [];
  let keptBytes = 0;
  let leftOutBytes = 0;

  function append(bytes: Buffer): void {
    const whole = isTorn ? Buffer.concat([Buffer.from("\n"), bytes]) : bytes;
    isTorn = true;
    for (let offset = 0; offset < whole.length; ) offset += writeSync(fd, whole, offset);
    isTorn = false;
    size += whole.length;
  }

  function keep(bytes: Buffer): void {
    last.push(bytes);
    keptBytes += bytes.length;
    while (keptBytes > lastBytes && last.length > 1) {
      const oldest = last.shift()?.length ?? 0;
      keptBytes -= oldest;
      leftOutBytes += oldest;
    }
  }

  return {
    /** Writes lines without their line feeds, with the time at which they were printed. */
    write(lines: readonly string[], printedAtMs: number): void {
      if (lines.length === 0) return;
      const time = new Date(printedAtMs).toISOString();
      const bytes = Buffer.from(lines.map((line) => `${time} ${line}\n`).join(""));
      try {
        if (size < firstBytes) append(bytes);
        else keep(bytes);
      } catch {
        leftOutBytes += bytes.length;
      }
    },
    /** Writes the end of a log that is too long. */
    close(): void {
      const note = `${new Date().toISOString()} [${leftOutBytes} bytes left out here]\n`;
      try {
        append(Buffer.concat([Buffer.from(leftOutBytes > 0 ? note : ""), ...last]));
      } catch {
        // The log of the service has the lines.
      } finally {
        closeSync(fd);
      }
    },
  };
}

function endsWithLine(fd: number, size: number): boolean {
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, size - 1);
  return byte[0] === lineFeed;
}

/** A line of a log. */
export interface LogLine {
  readonly text: string;
  /** null: the line has none. */
  readonly printedAtMs: number | null;
  /** The place of the byte after it. */
  readonly endByte: number;
}

const lineFeed = 0x0a;
/** Longer than any line. */
const pieceBytes = 64 * 1024;

/**
 * Reads whole lines of the log at `path`, some at a time: those that begin at `fromByte` or after it. The log is read when the
 * next lines are asked for, so that a slow reader costs no memory. Without a log there are none.
 */
export function* readLog(path: string, fromByte = 0): Generator<readonly LogLine[], void, void> {
  if (!existsSync(path)) return;
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(pieceBytes);
    const read = (place: number) => buffer.subarray(0, readSync(fd, buffer, 0, pieceBytes, place));
    let place = fromByte > 0 ? fromByte + read(fromByte - 1).indexOf(lineFeed) : 0;
    while (place >= fromByte) {
      const lines = linesIn(read(place), place);
      const last = lines.at(-1);
      if (last === undefined) return;
      place = last.endByte;
      yield lines;
    }
  } finally {
    closeSync(fd);
  }
}

const timed = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) /;

function linesIn(bytes: Buffer, place: number): readonly LogLine[] {
  const lines: LogLine[] = [];
  let from = 0;
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, from)) {
    const whole = withoutReturn(bytes.toString("utf8", from, end));
    const [head = "", time] = timed.exec(whole) ?? [];
    lines.push({
      endByte: place + end + 1,
      text: whole.slice(head.length),
      printedAtMs: time === undefined ? null : Date.parse(time),
    });
    from = end + 1;
  }
  return lines;
}

/** The last lines of the log at `path`, of at most `mostBytes`, that were printed from `sinceMs` on. */
export function readLastLines(path: string, mostBytes: number, sinceMs: number): readonly string[] {
  const lines = [...readLog(path, logBytes(path) - mostBytes)].flat();
  return lines.filter(({ printedAtMs }) => (printedAtMs ?? sinceMs) >= sinceMs).map(({ text }) => text);
}

const logName = /^(\d{1,15})\.log$/;

/** The highest number of a deployment that has a log, 0 if none has. */
export function lastLoggedId(statePath: string): number {
  const directory = join(statePath, "logs");
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.reduce((last, name) => Math.max(last, Number(logName.exec(name)?.[1] ?? 0)), 0);
}
