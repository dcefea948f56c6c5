import { appendFileSync, readFileSync, rmSync, statSync } from "node:fs";

/** When the parts of a log were printed. */
export interface LogTimes {
  /** Notes that what follows `byte` of the log was printed at `printedAtMs`. */
  readonly note: (byte: number, printedAtMs: number) => void;
}

/** People read seconds; each note is a write to the disk. */
const pauseMs = 100;
/** The notes of a day of output. */
const mostBytes = 2 * 1024 ** 2;

/** The file beside the log at `logPath`: a line `<byte> <milliseconds>` for each note. */
export function logTimesPath(logPath: string): string {
  return `${logPath}.times`;
}

/** Continues the notes on the log at `logPath`. A full disk costs notes, never the log. */
export function openLogTimes(logPath: string): LogTimes {
  const path = logTimesPath(logPath);
  let size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  let lastMs = 0;
  return {
    note(byte, printedAtMs) {
      if (printedAtMs - lastMs < pauseMs || size > mostBytes) return;
      lastMs = printedAtMs;
      const line = `${byte} ${printedAtMs}\n`;
      try {
        appendFileSync(path, line, { mode: 0o600 });
        size += line.length;
      } catch {
        size = Number.POSITIVE_INFINITY;
      }
    },
  };
}

/** @returns when what is at `byte` of the log was printed, null if that is not known; for bytes in ascending order */
export function readLogTimes(logPath: string): (byte: number) => number | null {
  const notes = readNotes(logTimesPath(logPath));
  let index = -1;
  return (byte) => {
    while (index + 1 < notes.length && (notes[index + 1]?.byte ?? 0) <= byte) index += 1;
    return notes[index]?.printedAtMs ?? null;
  };
}

function readNotes(path: string): readonly { readonly byte: number; readonly printedAtMs: number }[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return [];
  }
  const notes = text.matchAll(/^(\d+) (\d+)$/gm);
  return [...notes].map(([, byte, ms]) => ({ byte: Number(byte), printedAtMs: Number(ms) }));
}

/** For a log whose middle was left out, so that the places of the notes are not those of its bytes any more. */
export function dropLogTimes(logPath: string): void {
  rmSync(logTimesPath(logPath), { force: true });
}
