import { constants } from "node:fs";
import { open, statfs } from "node:fs/promises";

/** Of 1,000 pages and a transaction more: SQLite then moves the log into the database, and overwrites it. */
const reservedBytes = 4_500_000;
/** On a disk that is nearly full, the space is of more use elsewhere. */
const leastFreeBytes = 100_000_000;
const chunk = Buffer.alloc(64 * 1024);

/**
 * Fills the write-ahead log of the database at `path` with zeros, up to the size that it reaches in use. The sync of a
 * file that grows waits for the journal of the file system, and so for what other programs write; the sync of a part that
 * is there already does not. SQLite ignores what follows its last commit, so another process may use the log meanwhile.
 * Does nothing if the disk is nearly full.
 *
 * @throws if the log cannot be written, which changes nothing
 */
export async function reserveLog(path: string): Promise<void> {
  const { bavail, bsize } = await statfs(path);
  if (bavail * bsize < leastFreeBytes) return;
  // Only at the end, wherever that is by then, and never a new file.
  const file = await open(`${path}-wal`, constants.O_WRONLY | constants.O_APPEND);
  try {
    for (let { size } = await file.stat(); size < reservedBytes; size += chunk.length)
      await file.write(chunk);
    await file.datasync();
  } finally {
    await file.close();
  }
}
