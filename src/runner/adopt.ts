import type { Adoption } from "../deployments/deployment.ts";
import { isShortage } from "../platform/shortage.ts";
import { endedByItself } from "./ending.ts";
import { lostOutput, type OutputReader, openOutput } from "./output.ts";
import { ageMs, findProcessesOf, hasEnvironment, runMarks } from "./process-table.ts";
import { type RunContext, watchRun } from "./run.ts";
import { isHeld, readExitCode, readPid } from "./run-directory.ts";
import { checkDeployed } from "./signers/check-deployed.ts";
import { waitForEnd } from "./wait-for-end.ts";

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
