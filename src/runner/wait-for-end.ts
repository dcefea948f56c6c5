import { type FSWatcher, watch } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { type RunDirectory, readExitCode, waitUntilUnlocked } from "./run-directory.ts";

/** How long until the wait for the lock is begun again, where it could not be. */
const retryMs = 1_000;
/** How often the exit code is asked for where its coming cannot be watched. */
const askMs = 200;

/**
 * Resolves when the script has written its exit code, or when nothing holds its lock any more; never rejects. Both are
 * needed: a process that it left in the background may hold the lock for ever, and a killed script writes no exit code.
 *
 * @param options.isKnown aborted when the end is known otherwise: it resolves then, and leaves no process, watch or
 * descriptor
 * @param options.patienceMs it resolves then at the latest; null: never for that
 */
export async function waitForEnd(
  directory: RunDirectory,
  { isKnown, patienceMs }: { readonly isKnown: AbortSignal; readonly patienceMs: number | null },
): Promise<void> {
  const over = new AbortController();
  const stop = () => over.abort();
  isKnown.addEventListener("abort", stop);
  const timer = patienceMs === null ? undefined : setTimeout(stop, patienceMs);
  const stopWatching = watchForExitCode(directory, stop);
  while (!over.signal.aborted && !(await isUnlocked(directory, over.signal))) await delay(retryMs);
  clearTimeout(timer);
  stopWatching();
}

/** Calls `onWritten` when there is an exit code, be it there already; gives the function that ends it. */
function watchForExitCode(directory: RunDirectory, onWritten: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const look = () => {
    if (readExitCode(directory) !== null) onWritten();
  };
  // The system has only so many watches, for all of a user's programs together.
  const askAgain = () => {
    timer ??= setInterval(look, askMs).unref();
  };
  const watcher = watchOrNull(directory, look);
  if (watcher === null) askAgain();
  else watcher.on("error", askAgain);
  look();
  return () => {
    clearInterval(timer);
    watcher?.close();
  };
}

function watchOrNull({ path }: RunDirectory, onChange: () => void): FSWatcher | null {
  try {
    return watch(path, onChange);
  } catch {
    return null;
  }
}

/** False where the wait could not be begun, for want of a process or of memory: that says nothing about the script. */
async function isUnlocked(directory: RunDirectory, signal: AbortSignal): Promise<boolean> {
  try {
    await waitUntilUnlocked(directory, signal);
    return true;
  } catch {
    return false;
  }
}
