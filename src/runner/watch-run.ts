import { formatDuration } from "#config/duration";
import type { Deployment, Ending, NotStarted, Run } from "#deployments/deployment";
import type { Log } from "#log";
import { printable } from "#platform/terminal";
import type { SystemUser } from "#platform/users";
import type { Redactor } from "#redaction";
import { type EarlyEnd, endedByItself, endedEarly, killed, killedWithService } from "./ending.ts";
import type { OutputReader, OutputSink } from "./output.ts";
import { describeProcesses, findProcessesOf, terminateGroup } from "./processes.ts";
import { type RunDirectory, readExitCode, type SupervisorExit } from "./supervisor.ts";

/** Everything that one run of the script needs. */
export interface RunContext {
  readonly deployment: Deployment;
  readonly repoPath: string;
  readonly directory: RunDirectory;
  /** The user that the script runs as; null: the user of this process. */
  readonly user: SystemUser | null;
  readonly environment: Record<string, string>;
  readonly logPath: string;
  readonly redactor: Redactor;
  readonly timeoutMs: number;
  /** How long a script may take to exit after its time-out, before it is killed. */
  readonly timeoutGraceMs: number;
  /** How long an adopted run without a visible process may take to release its lock. */
  readonly outOfSightMs: number;
  /** A silence of this length is logged; 0: never. */
  readonly silenceMs: number;
  readonly sink: OutputSink;
  readonly log: Log;
}

export interface Watched {
  readonly context: RunContext;
  readonly output: OutputReader;
  /**
   * Resolves when supervisor.sh, and so the script, has ended; null if nobody saw how. `isKnown` is aborted when nobody
   * waits for it any more.
   */
  readonly exited: (isKnown: AbortSignal) => Promise<SupervisorExit | null>;
  /** The process group to end, or null if it cannot be found any more. */
  readonly group: () => number | null;
  /** Whether its supervisor was visible at the adoption; else it died with its service, unless it left an exit code. */
  readonly wasInSight: boolean;
  /** The time until its time-out; null if it has none, because it is not waited for that long. */
  readonly remainingMs: number | null;
}

/** Exit code of supervisor.sh if the script was not started. */
const notStartedCode = 75;

/** How long the rest of a script may take to exit after its supervisor was killed from outside. */
const remainsGraceMs = 2_000;

/** Waits for the end of a script: by itself, at its time-out, or on request. The first reason counts. */
export function watchRun(watched: Watched): Run {
  const { context, exited, group, remainingMs } = watched;
  const terminated = Promise.withResolvers<Termination>();
  const known = new AbortController();
  let hasEnded = false;
  const stopWatching = watchSilence(watched);

  function end(reason: EarlyEnd["reason"], graceMs: number): void {
    if (hasEnded) return;
    hasEnded = true;
    // Read now: later they are gone.
    const processes = reason === "timed_out" ? processesOf(watched) : [];
    const resolve = (wasForced: boolean) => terminated.resolve({ reason, wasForced, processes });
    terminate(group(), graceMs).then(resolve, terminated.reject);
  }

  // If the whole machine slept, the end of the script may be an event of this very turn of the loop.
  const timeOut = () => setImmediate(() => end("timed_out", context.timeoutGraceMs));
  const timer = remainingMs === null ? undefined : setTimeout(timeOut, remainingMs);

  async function waitForEnding(): Promise<Ending | NotStarted> {
    const exit = await Promise.race([exited(known.signal), terminated.promise.then(() => null)]);
    known.abort();
    clearTimeout(timer);
    stopWatching();
    if (hasEnded) return await concludeTermination(watched, await terminated.promise);
    hasEnded = true;
    return await concludeExit(watched, exit);
  }

  return { ended: waitForEnding(), end };
}

interface Termination {
  readonly reason: EarlyEnd["reason"];
  readonly wasForced: boolean;
  readonly processes: readonly string[];
}

function processesOf({ context, group }: Watched): readonly string[] {
  const { deployment, repoPath, redactor } = context;
  return describeProcesses({ deploymentId: deployment.id, repoPath, group: group(), redactor });
}

async function concludeTermination({ context, output }: Watched, termination: Termination): Promise<Ending> {
  const { deployment, repoPath, timeoutMs, redactor } = context;
  const survivors = findProcessesOf(deployment.id, repoPath).map(({ pid, command }) => ({
    pid,
    command: redactor.text(command),
  }));
  await output.finish();
  const printed = { step: output.step(), lastLines: output.lastLines() };
  return endedEarly({ ...termination, ...printed, timeoutMs, survivors });
}

async function concludeExit(watched: Watched, exit: SupervisorExit | null): Promise<Ending | NotStarted> {
  const { context, output, group, wasInSight } = watched;
  const exitCode = readExitCode(context.directory) ?? seenExitCode(exit);
  if (exitCode === null) await terminate(group(), remainsGraceMs);
  await output.finish();
  const lastLines = output.lastLines();
  if (exitCode !== null) return await endedByItself(context, exitCode, lastLines);
  if (exit === null && !wasInSight) return killedWithService(lastLines);
  if (exit === null || exit.signal !== null) return killed(exit?.signal ?? null, lastLines);
  const reason = printable(lastLines.at(-1) ?? "no reason given");
  return { state: "not_started", detail: `The script could not be started (${reason}).` };
}

/** The exit code of a script if supervisor.sh could not write it to its file, or null if no script was started. */
function seenExitCode(exit: SupervisorExit | null): number | null {
  return exit === null || exit.code === notStartedCode ? null : exit.code;
}

async function terminate(group: number | null, graceMs: number): Promise<boolean> {
  return group !== null && (await terminateGroup(group, graceMs)).wasForced;
}

/** Logs a silence of `silenceMs`, and again each time it has become twice as long. @returns a function that stops it */
function watchSilence(watched: Watched): () => void {
  const { output, context } = watched;
  const { silenceMs } = context;
  let reportAfterMs = silenceMs;
  let [sinceMs, isOver] = [output.quietSinceMs(), silenceMs === 0];
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    if (isOver) return;
    if (output.quietSinceMs() !== sinceMs) reportAfterMs = silenceMs;
    sinceMs = output.quietSinceMs();
    const silentMs = performance.now() - sinceMs;
    if (silentMs >= reportAfterMs) logSilence(watched, silentMs);
    while (reportAfterMs <= silentMs) reportAfterMs *= 2;
    lookIn(reportAfterMs - silentMs);
  }

  function lookIn(ms: number): void {
    // If this process slept, output may be an event of this very turn of the loop.
    timer = setTimeout(() => setImmediate(look), Math.ceil(ms));
  }

  if (!isOver) lookIn(silenceMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

function logSilence(watched: Watched, silentMs: number): void {
  const { output, context } = watched;
  const { id } = context.deployment;
  const [step, lastLine] = [output.step(), output.lastLines().at(-1) ?? null];
  const processes = processesOf(watched);
  const where = step === null ? "" : ` in the step ${printable(step)}`;
  const last = lastLine === null ? "It has printed nothing at all." : `Its last line: ${printable(lastLine)}`;
  const waiting = processes.map((line) => `\n  ${line}`).join("");
  context.log.warn(
    { event: "deployment.silent", deployment: id, silentMs: Math.round(silentMs), step, lastLine, processes },
    `Deployment ${id} has been silent for ${formatDuration(silentMs)}${where}. ${last}${waiting && `\nIts processes:${waiting}`}`,
  );
}
