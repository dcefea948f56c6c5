import { close, fstatSync, openSync, read } from "node:fs";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { logFiles } from "../runner/log-file.ts";
import { notFound, wantedDeployment } from "./history.ts";
import type { ControlContext, ControlReply, ControlRequest } from "./route.ts";

/** What a deployment has printed so far, exactly as its log has it. */
export function showLog({ store, statePath, log }: ControlContext, { id }: ControlRequest): ControlReply {
  const deployment = wantedDeployment(store, id);
  if (deployment === null) return notFound(id);
  const snapshot = openLogSnapshot(statePath, deployment.id);
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

/** What a deployment had printed at one moment. */
export interface LogSnapshot {
  /** Yields it in pieces, once; the files are closed at the end, also after a fault. */
  readonly read: () => AsyncGenerator<Buffer, void, void>;
}

const pieceBytes = 64 * 1024;
const readAsync = promisify(read);
const closeAsync = promisify(close);

/**
 * Opens the log of a deployment as it is now. The runner writes the log in the same turn of the event loop in which it
 * publishes the lines, so the lines published from now on continue exactly where this ends. Files stay open across a
 * rename.
 */
export function openLogSnapshot(statePath: string, deploymentId: number): LogSnapshot {
  const parts = logFiles(statePath, deploymentId).flatMap(openIfThere);
  return {
    async *read() {
      try {
        for (const { fd, bytes } of parts) yield* piecesOf(fd, bytes);
      } finally {
        for (const { fd } of parts) await closeAsync(fd);
      }
    },
  };
}

async function* piecesOf(fd: number, bytes: number): AsyncGenerator<Buffer, void, void> {
  for (let position = 0; position < bytes; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, bytes - position));
    const { bytesRead } = await readAsync(fd, piece, 0, piece.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield piece.subarray(0, bytesRead);
  }
}

function openIfThere(path: string): { readonly fd: number; readonly bytes: number }[] {
  try {
    const fd = openSync(path, "r");
    return [{ fd, bytes: fstatSync(fd).size }];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** Passes each piece to `take`, which writes to `response`, as fast as its reader reads; stops if the reader has gone. */
export async function sendSnapshot(
  snapshot: LogSnapshot,
  response: ServerResponse,
  take: (piece: Buffer) => void,
): Promise<void> {
  for await (const piece of snapshot.read()) {
    if (response.destroyed) return;
    take(piece);
    if (response.writableNeedDrain) await drained(response);
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
