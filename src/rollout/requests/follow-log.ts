import { type FileHandle, open, stat } from "node:fs/promises";

/** Reads what is appended to a log. */
export interface LogFollower {
  /** The whole lines since the last call. */
  readonly read: () => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

const pieceBytes = 256 * 1024;

/**
 * Follows the log at `path` from its present end, also when its writer moves it aside and starts a new one. A log that is
 * not there yet is read from its beginning.
 */
export async function followLog(path: string): Promise<LogFollower> {
  let file = await openIfThere(path);
  let position = file === null ? 0 : (await file.stat()).size;
  let rest = "";

  async function readToEnd(): Promise<string> {
    const pieces: Buffer[] = [];
    for (;;) {
      const { bytesRead, buffer } = await readPiece(file, position);
      if (bytesRead === 0) return Buffer.concat(pieces).toString();
      pieces.push(buffer.subarray(0, bytesRead));
      position += bytesRead;
    }
  }

  async function read(): Promise<readonly string[]> {
    file ??= await openIfThere(path);
    let text = await readToEnd();
    if (await isReplaced(path, file)) {
      // What was written between the two looks.
      text += await readToEnd();
      await file?.close();
      file = await openIfThere(path);
      position = 0;
      text += await readToEnd();
    }
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    return lines;
  }

  return { read, close: async () => file?.close() };
}

async function readPiece(file: FileHandle | null, position: number) {
  const buffer = Buffer.alloc(file === null ? 0 : pieceBytes);
  return file === null ? { bytesRead: 0, buffer } : await file.read(buffer, 0, pieceBytes, position);
}

async function isReplaced(path: string, file: FileHandle | null): Promise<boolean> {
  if (file === null) return false;
  const [present, own] = [await stat(path).catch(() => null), await file.stat()];
  return present !== null && present.ino !== own.ino;
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
