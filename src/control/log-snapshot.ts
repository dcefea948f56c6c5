import { close, fstatSync, openSync, read } from "node:fs";
import { promisify } from "node:util";
import { logFiles } from "../runner/log-file.ts";

/** What a deployment had printed at one moment. */
export interface LogSnapshot {
  /** Gives it in pieces, once; the files are closed at the end, however that comes. */
  readonly read: () => AsyncGenerator<Buffer, void, void>;
}

const pieceBytes = 64 * 1024;
const readAsync = promisify(read);
const closeAsync = promisify(close);

/**
 * Opens the log of a deployment as it is now: the runner writes it in the same turn of the loop in which it tells the
 * lines, so what is told from now on goes on exactly where this ends. What is opened stays, whatever is renamed.
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
