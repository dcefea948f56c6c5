import { type FSWatcher, watch } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Adoption } from "../deployments/deployment.ts";
import { isShortage } from "../platform/shortage.ts";
import { endedByItself } from "./ending.ts";
import { lostOutput, type OutputReader, openOutput } from "./output.ts";
import { ageMs, findProcessesOf, hasEnvironment, runMarks } from "./processes.ts";
import { type RunContext, watchRun } from "./run.ts";
import { isHeld, type RunDirectory, readExitCode, readPid, waitUntilUnlocked } from "./run-directory.ts";
import { checkDeployed } from "./signers/check-deployed.ts";

/** A run that is past its time-out already is still given this long. */
const leastRemainingMs = 1_000;

/**
 * Finds out what became of a run whose service died: by the lock that its script holds and the exit code it left. Files
 * of the run may be missing or unreadable, as in a state directory that was restored from a backup.
 *
 * @throws only what `isShortage` is true for
 */
export async function adoptRun(context: RunContext): Promise<Adoption> {
  const wasLocked = await isHeld(context.directory, context.deployment.id, context.repoPath);
  // Asked in this order: a script that ends in between has written its exit code before it lets go of the lock.
  const exitCode = readExitCode(context.directory);
  if (exitCode !== null) {
    const ending = await checkDeployed(context, endedByItself(exitCode, await readRest(context)));
    return { kind: "ended", ending };
  }
  return wasLocked ? { kind: "alive", run: adoptLiving(context) } : { kind: "gone" };
}

async function readRest(context: RunContext): Promise<readonly string[]> {
  const output = resumeOutput(context);
  await output.finish();
  return output.lastLines();
}

/** An output that cannot be read on says so in its last line. */
function resumeOutput(context: RunContext): OutputReader {
  try {
    return openOutput({ ...context, pipePath: context.directory.outputPath, isResumed: true });
  } catch (error) {
    if (isShortage(error)) throw error;
    return lostOutput(context, (error as Error).message);
  }
}

function adoptLiving(context: RunContext) {
  const { deployment, directory, repoPath, timeoutMs, outOfSightMs } = context;
  const output = resumeOutput(context);
  const marks = runMarks(deployment.id, repoPath);
  /** Ids of processes are used again, and those of another container mean nothing here. */
  const group = () => {
    const pid = readPid(directory);
    return pid !== null && hasEnvironment(pid, marks) ? pid : null;
  };
  const pid = group();
  // A container that is killed lets go of the service's lock before the last process in it is gone.
  const wasInSight = pid !== null;
  const remainingMs = Math.max(leastRemainingMs, timeoutMs - (pid === null ? 0 : ageMs(pid)));
  // Where all of it is out of sight there is no script to be waited for: what holds the lock is dying, or was left behind.
  const limits =
    wasInSight || findProcessesOf(deployment.id, repoPath).length > 0
      ? { remainingMs, patienceMs: null }
      : { remainingMs: null, patienceMs: outOfSightMs };
  const exited = (isKnown: AbortSignal) => waitForEnd(directory, { isKnown, ...limits }).then(() => null);
  return watchRun({ context, output, exited, group, wasInSight, remainingMs: limits.remainingMs });
}

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
