import { watch } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Adoption } from "../deployments/deployment.ts";
import { endedByItself } from "./ending.ts";
import { openOutput } from "./output.ts";
import { ageMs, hasEnvironment, runMarks } from "./process-table.ts";
import { type RunContext, watchRun } from "./run.ts";
import { isLocked, type RunDirectory, readExitCode, readPid, waitUntilUnlocked } from "./run-directory.ts";

/** A run that is past its time-out already is still given this long. */
const leastRemainingMs = 1_000;
/** How long until the wait for a script's end is begun again, where it could not be. */
const retryMs = 1_000;

/** Finds out what became of a run whose service died: by the lock that its script holds and the exit code it left. */
export async function adoptRun(context: RunContext): Promise<Adoption> {
  const wasLocked = await isLocked(context.directory);
  // Asked in this order: a script that ends in between has written its exit code before it lets go of the lock.
  const exitCode = readExitCode(context.directory);
  if (exitCode !== null) return { kind: "ended", ending: endedByItself(exitCode, await readRest(context)) };
  return wasLocked ? { kind: "alive", run: adoptLiving(context) } : { kind: "gone" };
}

async function readRest(context: RunContext): Promise<readonly string[]> {
  const output = openOutput({ ...context, pipePath: context.directory.outputPath, isResumed: true });
  await output.finish();
  return output.lastLines();
}

function adoptLiving(context: RunContext) {
  const { deployment, directory, repoPath, timeoutMs } = context;
  const output = openOutput({ ...context, pipePath: directory.outputPath, isResumed: true });
  const marks = runMarks(deployment.id, repoPath);
  /** Ids of processes are used again, and those of another container mean nothing here. */
  const group = () => {
    const pid = readPid(directory);
    return pid !== null && hasEnvironment(pid, marks) ? pid : null;
  };
  const pid = group();
  const ranForMs = pid === null ? 0 : ageMs(pid);
  const remainingMs = Math.max(leastRemainingMs, timeoutMs - ranForMs);
  // A container that is killed lets go of the service's lock before the last process in it is gone.
  const wasInSight = pid !== null;
  return watchRun({ context, output, exited: hasEnded(context), group, wasInSight, remainingMs });
}

/**
 * Resolves when the script has written its exit code, or when nothing holds its lock any more. Both are needed: a
 * process that it left in the background may hold the lock for ever, and a killed script writes no exit code.
 */
async function hasEnded({ directory }: RunContext): Promise<null> {
  const over = new AbortController();
  const watcher = watch(directory.path, (_event, name) => {
    if (name === "exit") over.abort();
  });
  if (readExitCode(directory) !== null) over.abort();
  while (!(await isUnlocked(directory, over.signal))) await delay(retryMs);
  watcher.close();
  return null;
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
