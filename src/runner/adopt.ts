import { setTimeout as delay } from "node:timers/promises";
import type { Adoption, Run } from "#deployments/deployment";
import { isShortage } from "#platform/run-command";
import { endedByItself } from "./ending.ts";
import { lostOutput, type OutputReader, openOutput } from "./output.ts";
import { ageMs, findProcessesOf, hasEnvironment, runMarks } from "./processes.ts";
import { isHeld, type RunDirectory, readExitCode, readPid, waitUntilUnlocked } from "./supervisor.ts";
import { type RunContext, watchRun } from "./watch-run.ts";

/** The least time that an adopted run gets, even if it is past its time-out. */
const leastRemainingMs = 1_000;

/**
 * Takes over a run whose service died. The lock that its script holds and the exit code that it left show the result of
 * it. Files of the run may be missing or unreadable, as in a state directory that was restored from a backup.
 *
 * @throws only errors for which `isShortage` is true
 */
export async function adoptRun(context: RunContext): Promise<Adoption> {
  const wasLocked = await isHeld(context.directory, context.deployment.id, context.repoPath);
  // In this order: a script that ends in between writes its exit code before it releases the lock.
  const exitCode = readExitCode(context.directory);
  if (exitCode === null) return wasLocked ? { kind: "alive", run: adoptLiving(context) } : { kind: "gone" };
  const output = resumeOutput(context);
  await output.finish();
  return { kind: "ended", ending: await endedByItself(context, exitCode, output.lastLines()) };
}

/** If the output cannot be read on, its last line says so. */
function resumeOutput(context: RunContext): OutputReader {
  try {
    return openOutput({ ...context, pipePath: context.directory.outputPath });
  } catch (error) {
    if (isShortage(error)) throw error;
    return lostOutput(context, (error as Error).message);
  }
}

function adoptLiving(context: RunContext): Run {
  const { deployment, directory, repoPath, timeoutMs, outOfSightMs } = context;
  const output = resumeOutput(context);
  const marks = runMarks(deployment.id, repoPath);
  /** Process ids are reused, and those of another container mean nothing here. */
  const group = () => {
    const pid = readPid(directory);
    return pid !== null && hasEnvironment(pid, marks) ? pid : null;
  };
  const pid = group();
  // A killed container releases the service's lock before its last process is gone.
  const wasInSight = pid !== null;
  const remainingMs = Math.max(leastRemainingMs, timeoutMs - (pid === null ? 0 : ageMs(pid)));
  // If no process of it is visible, there is no script to wait for: the holder of the lock is dying or was left behind.
  const limits =
    wasInSight || findProcessesOf(deployment.id, repoPath).length > 0
      ? { remainingMs, patienceMs: null }
      : { remainingMs: null, patienceMs: outOfSightMs };
  const exited = (isKnown: AbortSignal) => waitForEnd(directory, isKnown, limits.patienceMs).then(() => null);
  return watchRun({ context, output, exited, group, wasInSight, remainingMs: limits.remainingMs });
}

/** How often the exit code is looked for. */
const lookEveryMs = 200;
/** The pause before the wait for the lock is retried, if it could not begin. */
const retryMs = 1_000;

/**
 * Resolves when the script has written its exit code, or when nothing holds its lock any more; never rejects. Both are
 * needed: a background process of the script may hold the lock for ever, and a killed script writes no exit code.
 *
 * @param isKnown aborted when the end is known by other means: it then resolves, and leaves no process or timer
 * @param patienceMs the longest wait; null: no limit
 */
async function waitForEnd(
  directory: RunDirectory,
  isKnown: AbortSignal,
  patienceMs: number | null,
): Promise<void> {
  const over = new AbortController();
  const stop = () => over.abort();
  isKnown.addEventListener("abort", stop);
  const patience = patienceMs === null ? undefined : setTimeout(stop, patienceMs);
  const looking = setInterval(() => {
    if (readExitCode(directory) !== null) stop();
  }, lookEveryMs);
  while (!over.signal.aborted && !(await isUnlocked(directory, over.signal))) await delay(retryMs);
  clearTimeout(patience);
  clearInterval(looking);
}

/** False if the wait could not begin, for lack of a process or memory: that says nothing about the script. */
async function isUnlocked(directory: RunDirectory, signal: AbortSignal): Promise<boolean> {
  try {
    await waitUntilUnlocked(directory, signal);
    return true;
  } catch {
    return false;
  }
}
