import {
  closeSync,
  createReadStream,
  existsSync,
  fstatSync,
  openSync,
  type ReadStream,
  readFileSync,
} from "node:fs";
import type { ServerResponse } from "node:http";
import { logFiles, logPath } from "../runner/log-file.ts";
import { logTimesPath } from "../runner/log-times.ts";
import { notFound, wantedDeployment } from "./history.ts";
import { type ControlContext, type ControlReply, type ControlRequest, refusal } from "./route.ts";

/** What a deployment has printed so far, exactly as its log has it; with `from` and `to`, only the bytes between them. */
export function showLog(
  { store, logStatePath }: ControlContext,
  { id, query }: ControlRequest,
): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const [from, to] = [Number(query.get("from") ?? 0), Number(query.get("to") ?? Number.MAX_SAFE_INTEGER)];
  if (![from, to].every(Number.isSafeInteger) || from < 0 || to < from)
    return refusal(400, "The part of a log is given by two places in it: from=0&to=1000");
  const snapshot = openLogSnapshot(logStatePath, deployment.id, from, to);
  return {
    kind: "stream",
    type: "text/plain; charset=utf-8",
    async write(response) {
      await sendSnapshot(snapshot, response, (chunk) => response.write(chunk));
      response.end();
    },
  };
}

/** When the parts of its log were printed: a line `<byte> <milliseconds>` for each, none if that is not known. */
export function showTimes({ store, logStatePath }: ControlContext, { id }: ControlRequest): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const notes = readIfThere(logTimesPath(logPath(logStatePath, deployment.id)));
  return {
    kind: "stream",
    type: "text/plain; charset=utf-8",
    write(response) {
      response.end(notes);
    },
  };
}

/** What a deployment had printed at one moment, to be read once. */
export interface LogSnapshot {
  readonly parts: readonly ReadStream[];
  /** The place of its first byte in the log. */
  readonly startByte: number;
}

/**
 * Opens the log of a deployment as it is now. The runner writes the log in the same turn of the event loop in which it
 * publishes the lines, so the lines published from now on continue exactly where this ends. Files stay open across a
 * rename.
 *
 * @param fromByte where to begin; a place after the end is none of this log, which then is sent from its beginning
 */
export function openLogSnapshot(
  statePath: string,
  deploymentId: number,
  fromByte = 0,
  toByte = Number.MAX_SAFE_INTEGER,
): LogSnapshot {
  const files = logFiles(statePath, deploymentId).flatMap(openIfThere);
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const startByte = fromByte > bytes ? 0 : fromByte;
  let place = 0;
  const parts = files.flatMap(({ fd, size }) => {
    const [start, end] = [Math.max(0, startByte - place), Math.min(size, toByte - place)];
    place += size;
    if (start < end) return [createReadStream("", { fd, start, end: end - 1 })];
    closeSync(fd);
    return [];
  });
  return { parts, startByte };
}

/** The place at which the last line of a log begins that has no end yet; the end of the log if every line has one. */
export function lastLineByte(statePath: string, deploymentId: number): number {
  let place = 0;
  let lineByte = 0;
  for (const path of logFiles(statePath, deploymentId)) {
    const bytes = readIfThere(path);
    const index = bytes.lastIndexOf(0x0a);
    if (index !== -1) lineByte = place + index + 1;
    place += bytes.length;
  }
  return lineByte;
}

function readIfThere(path: string): Buffer {
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
}

function openIfThere(path: string): readonly { readonly fd: number; readonly size: number }[] {
  try {
    const fd = openSync(path, "r");
    return [{ fd, size: fstatSync(fd).size }];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/**
 * Passes each piece to `take`, which writes to `response`, as fast as its reader reads; stops if the reader has gone. The
 * files are closed at the end, also after a fault.
 */
export async function sendSnapshot(
  { parts }: LogSnapshot,
  response: ServerResponse,
  take: (piece: Buffer) => void,
): Promise<void> {
  try {
    for (const part of parts) {
      for await (const piece of part as AsyncIterable<Buffer>) {
        if (response.destroyed) return;
        take(piece);
        if (response.writableNeedDrain) await drained(response);
      }
    }
  } finally {
    for (const part of parts) part.destroy();
  }
}

/** Resolves when the reader has caught up, or has gone. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done);
      resolve();
    };
    if (response.destroyed) resolve();
    else response.on("drain", done).on("close", done);
  });
}
