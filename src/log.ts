import { once } from "node:events";
import { destination, type Logger, pino, stdTimeFunctions } from "pino";
import type { LogLevel } from "#config/service";

export type Log = Logger;

/** How much may wait while nobody reads the output. Further lines are dropped and counted. */
const bufferBytes = 4 * 1024 ** 2;

/** How long the last lines may take to be written when the process ends. */
const lastLinesMs = 1_000;

/**
 * Opens the service's log: one JSON object a line on standard output, each with `event`, a fixed name, and `msg`, a
 * sentence. If the reader stalls or disappears, lines are lost; memory stays bounded and the service goes on.
 */
export function openLog(level: LogLevel): Log {
  const output = destination({ fd: 1, sync: false, maxLength: bufferBytes });
  let dropped = 0;
  const sayDropped = () => {
    const count = dropped;
    dropped = 0;
    log.warn({ event: "log.dropped", count }, `${count} log lines were dropped: nobody read the output`);
  };
  output.on("drop", () => {
    if (dropped === 0) output.once("drain", sayDropped);
    dropped += 1;
  });
  let isBroken = false;
  output.on("error", () => {
    isBroken = true;
  });
  output.flush = async (done = () => {}) => {
    const signal = AbortSignal.timeout(lastLinesMs);
    if (!isBroken) await once(output, "drain", { signal }).catch(() => {});
    done();
  };
  // pino calls this when the process exits. It would retry for ever if the reader is gone, and wait for ever if the
  // reader stalls.
  output.flushSync = () => {};
  const formatters = { level: (label: string) => ({ level: label }) };
  const log = pino({ level, base: null, timestamp: stdTimeFunctions.isoTime, formatters }, output);
  return log;
}
