import { formatDuration } from "#config/duration";
import type { Deployment } from "#deployments/deployment";
import type { Log } from "#log";
import { printable } from "#platform/terminal";

/** A period without output, and what may explain it. */
export interface Silence {
  readonly silentMs: number;
  readonly step: string | null;
  readonly lastLine: string | null;
  /** A line for each process, below its parent. */
  readonly processes: readonly string[];
}

export function logSilence(
  log: Log,
  { id }: Deployment,
  { silentMs, step, lastLine, processes }: Silence,
): void {
  const where = step === null ? "" : ` in the step ${printable(step)}`;
  const last = lastLine === null ? "It has printed nothing at all." : `Its last line: ${printable(lastLine)}`;
  const waiting = processes.map((line) => `\n  ${line}`).join("");
  log.warn(
    { event: "deployment.silent", deployment: id, silentMs: Math.round(silentMs), step, lastLine, processes },
    `Deployment ${id} has been silent for ${formatDuration(silentMs)}${where}. ${last}${waiting && `\nIts processes:${waiting}`}`,
  );
}

export interface SilenceOptions {
  /** 0: never. At most 24 h. */
  readonly silenceMs: number;
  /** When output last arrived, by the clock of `performance.now()`. */
  readonly quietSinceMs: () => number;
  readonly onSilent: (silentMs: number) => void;
}

/**
 * Reports a silence of `silenceMs`, and again each time it has become twice as long.
 *
 * @returns a function that stops the watch
 */
export function watchSilence({ silenceMs, quietSinceMs, onSilent }: SilenceOptions): () => void {
  const measure = createSilenceMeasure(silenceMs, quietSinceMs());
  let timer: NodeJS.Timeout | null = null;
  let isOver = silenceMs === 0;

  function look(): void {
    if (isOver) return;
    const { reportedMs, nextMs } = measure(performance.now(), quietSinceMs());
    if (reportedMs !== null) onSilent(reportedMs);
    lookIn(nextMs);
  }

  function lookIn(ms: number): void {
    // If this process slept, output may be an event of this very turn of the loop.
    timer = setTimeout(() => setImmediate(look), Math.ceil(ms));
  }

  if (!isOver) lookIn(silenceMs);
  return () => {
    isOver = true;
    if (timer) clearTimeout(timer);
  };
}

/**
 * Creates a function that takes a time and the time of the last output before it. It returns the length of the silence to
 * report now, or null, and the milliseconds until the next call.
 */
export function createSilenceMeasure(silenceMs: number, startMs: number) {
  let sinceMs = startMs;
  let reportAfterMs = silenceMs;
  return (
    nowMs: number,
    latestMs: number,
  ): { readonly reportedMs: number | null; readonly nextMs: number } => {
    if (latestMs !== sinceMs) reportAfterMs = silenceMs;
    sinceMs = latestMs;
    const silentMs = nowMs - sinceMs;
    const isReported = silentMs >= reportAfterMs;
    while (reportAfterMs <= silentMs) reportAfterMs *= 2;
    return { reportedMs: isReported ? silentMs : null, nextMs: reportAfterMs - silentMs };
  };
}
