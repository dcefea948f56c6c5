import { closeSync, createReadStream, fstatSync, openSync, type ReadStream } from "node:fs";
import type { ServerResponse } from "node:http";
import { logFiles } from "../runner/log-file.ts";
import { notFound, wantedDeployment } from "./history.ts";
import type { ControlContext, ControlReply, ControlRequest } from "./route.ts";

/** What a deployment has printed so far, exactly as its log has it. */
export function showLog({ store, logStatePath, log }: ControlContext, { id }: ControlRequest): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const snapshot = openLogSnapshot(logStatePath, deployment.id);
  return { kind: "stream", type: "text/plain; charset=utf-8", write: (response) => void pour(response) };

  async function pour(response: ServerResponse): Promise<void> {
    try {
      await sendSnapshot(snapshot, response, (chunk) => response.write(chunk));
      response.end();
    } catch (error) {
      log.error({ event: "control.failed", err: error }, "The log of a deployment could not be read");
      response.destroy();
    }
  }
}

/** What a deployment had printed at one moment, to be read once. */
export type LogSnapshot = readonly ReadStream[];

/**
 * Opens the log of a deployment as it is now. The runner writes the log in the same turn of the event loop in which it
 * publishes the lines, so the lines published from now on continue exactly where this ends. Files stay open across a
 * rename.
 */
export function openLogSnapshot(statePath: string, deploymentId: number): LogSnapshot {
  return logFiles(statePath, deploymentId).flatMap(openIfThere);
}

function openIfThere(path: string): readonly ReadStream[] {
  try {
    const fd = openSync(path, "r");
    const { size } = fstatSync(fd);
    if (size > 0) return [createReadStream(path, { fd, start: 0, end: size - 1 })];
    closeSync(fd);
    return [];
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
  snapshot: LogSnapshot,
  response: ServerResponse,
  take: (piece: Buffer) => void,
): Promise<void> {
  try {
    for (const part of snapshot) {
      for await (const piece of part as AsyncIterable<Buffer>) {
        if (response.destroyed) return;
        take(piece);
        if (response.writableNeedDrain) await drained(response);
      }
    }
  } finally {
    for (const part of snapshot) part.destroy();
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
