import { closeSync, constants, fstatSync, openSync } from "node:fs";
import { Socket } from "node:net";
import type { RedactionStream, Redactor } from "#redaction";
import { createLineCutter, lineText, openLog, stepOf } from "./log-file.ts";

/** Receives a script's output. */
export interface OutputSink {
  readonly onLine: (line: string) => void;
  readonly onStep: (name: string) => void;
}

/** Reads a script's output. */
export interface OutputReader {
  /** Reads the rest of the pipe, then closes the log; call it when the script has ended. */
  readonly finish: () => Promise<void>;
  /** The last lines: they may show a person why it failed. */
  readonly lastLines: () => readonly string[];
  /** The step that began last, or null. */
  readonly step: () => string | null;
  /** When output last arrived, or when reading began, by the clock of `performance.now()`. */
  readonly quietSinceMs: () => number;
}

export interface OutputOptions {
  readonly pipePath: string;
  readonly logPath: string;
  /** All output passes through it. */
  readonly redactor: Redactor;
  readonly sink: OutputSink;
}

/** After the script's end, output of its remaining children may still arrive; this much silence ends the reading. */
const silenceMs = 200;
const longestDrainMs = 2_000;
const lastLineCount = 20;
/** Without O_NONBLOCK, opening a pipe waits for its other end. */
const readWithoutWaiting = constants.O_RDONLY | constants.O_NONBLOCK;
/** Each step is written to disk, so their number is bounded. */
const mostSteps = 100;
/** After this much output, lines go only to the log file. */
const mostStreamedBytes = 10 * 1024 ** 2;

/**
 * Reads a script's output from its named pipe to the log file and, line by line, to `sink`. A slow reader makes the
 * script wait, as any pipe does, instead of using memory.
 */
export function openOutput({ pipePath, logPath, redactor, sink }: OutputOptions): OutputReader {
  const fd = openSync(pipePath, readWithoutWaiting);
  try {
    if (!fstatSync(fd).isFIFO()) throw new Error(`${pipePath} is not a named pipe`);
    return readOutput(fd, { logPath, redaction: redactor.stream(), sink });
  } catch (error) {
    // When descriptors run out, none may leak.
    closeSync(fd);
    throw error;
  }
}

/** Stands in for an output that cannot be read on: a line says why. */
export function lostOutput({ sink }: Pick<OutputOptions, "sink">, reason: string): OutputReader {
  const line = `[The rest of the output is lost: ${reason}]`;
  const sinceMs = performance.now();
  sink.onLine(line);
  return { lastLines: () => [line], step: () => null, quietSinceMs: () => sinceMs, finish: async () => {} };
}

interface Destination {
  readonly logPath: string;
  readonly redaction: RedactionStream;
  readonly sink: OutputSink;
}

function readOutput(fd: number, { logPath, redaction, sink }: Destination): OutputReader {
  const log = openLog(logPath);
  const lastLines: string[] = [];
  let cut: string[] = [];
  let streamedBytes = 0;
  let steps = 0;
  let lastStep: string | null = null;
  const cutter = createLineCutter((line) => {
    log.add(line);
    cut.push(lineText(line));
  });
  /** In this order: who is told of a line or a step finds it in the log. */
  const passOn = () => {
    log.flush(Date.now());
    for (const line of cut) noteLine(line);
    cut = [];
  };

  function noteLine(line: string): void {
    lastLines.push(line);
    if (lastLines.length > lastLineCount) lastLines.shift();
    const step = steps < mostSteps ? stepOf(line) : null;
    if (step !== null) {
      steps += 1;
      lastStep = step;
      sink.onStep(step);
    }
    streamedBytes += line.length + 1;
    if (streamedBytes <= mostStreamedBytes) sink.onLine(line);
  }

  const socket = new Socket({ fd, readable: true, writable: false });
  let isEnded = false;
  let lastReadMs = performance.now();
  socket.on("data", (chunk: Buffer) => {
    lastReadMs = performance.now();
    cutter.push(redaction.push(chunk));
    passOn();
    // One chunk per turn of the event loop: a script that floods its output must not starve the rest of the service.
    socket.pause();
    setImmediate(() => socket.resume());
  });
  const ended = new Promise<void>((resolve) => {
    socket.on("close", () => {
      isEnded = true;
      resolve();
    });
    socket.on("error", () => socket.destroy());
  });

  async function drain(): Promise<void> {
    const startMs = performance.now();
    lastReadMs = startMs;
    await new Promise<void>((resolve) => {
      const timer = setInterval(() => {
        const nowMs = performance.now();
        if (isEnded || nowMs - lastReadMs >= silenceMs || nowMs - startMs >= longestDrainMs) done();
      }, silenceMs / 10);
      function done(): void {
        clearInterval(timer);
        resolve();
      }
      ended.then(done, done);
    });
    socket.destroy();
  }

  return {
    lastLines: () => lastLines,
    step: () => lastStep,
    quietSinceMs: () => lastReadMs,
    async finish() {
      await drain();
      cutter.push(redaction.finish());
      cutter.finish();
      passOn();
      log.close();
    },
  };
}
