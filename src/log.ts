import { destination, type Logger, pino, stdTimeFunctions } from "pino";
import type { LogLevel } from "./config.ts";

export type Log = Logger;

/** What may wait to be written while nobody reads our output; past it lines are dropped and counted. */
const bufferBytes = 4 * 1024 ** 2;

/** How long the last lines may take to be written when the process ends. */
const lastLinesMs = 1_000;

/**
 * The service's log: one JSON object a line on standard output, each with `event`, a fixed name, and `msg`, a
 * sentence. A reader that stalls or goes away costs lines, never memory and never the service.
 */
export function openLog(level: LogLevel): Log {
  const output = destination({ fd: 1, sync: false, maxLength: bufferBytes });
  let dropped = 0;
  output.on("drop", () => {
    dropped += 1;
  });
  output.on("drain", () => {
    if (dropped === 0) return;
    const count = dropped;
    dropped = 0;
    log.warn({ event: "log.dropped", count }, `${count} log lines were dropped: nobody read the output`);
  });
  let isBroken = false;
  output.on("error", () => {
    isBroken = true;
  });
  output.flush = (done = () => {}) => {
    if (isBroken) done();
    else whenFirst(output, ["drain", "error"], lastLinesMs, done);
  };
  // pino calls it when the process ends. It would try for ever where the reader has gone, and wait for ever where the
  // reader stalls.
  output.flushSync = () => {};
  const log = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    output,
  );
  return log;
}

/** Calls `done` once: at the first of `events`, or after `limitMs`. */
function whenFirst(
  emitter: NodeJS.EventEmitter,
  events: readonly string[],
  limitMs: number,
  done: () => void,
): void {
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    done();
  };
  const timer = setTimeout(end, limitMs);
  for (const event of events) emitter.once(event, end);
}
