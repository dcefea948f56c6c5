import type { Deployment, Ending, NotStarted, Run } from "../deployments/deployment.ts";
import { type EarlyEnd, endedByItself, endedEarly, killed } from "./ending.ts";
import type { Mask } from "./masking/mask.ts";
import type { Output, OutputSink } from "./output.ts";
import { printable } from "./printable.ts";
import { findProcessesOf } from "./process-table.ts";
import { type RunDirectory, readExitCode } from "./run-directory.ts";
import { terminateGroup } from "./terminate.ts";

/** All that one run of the script is made of. */
export interface RunContext {
  readonly deployment: Deployment;
  readonly statePath: string;
  readonly repoPath: string;
  readonly directory: RunDirectory;
  readonly environment: Record<string, string>;
  readonly logPath: string;
  readonly mask: Mask;
  readonly timeoutMs: number;
  /** How long a script that has run out of time may take to end by itself. */
  readonly timeoutGraceMs: number;
  readonly sink: OutputSink;
}

/** How keeper.sh ended, where that is known. */
export interface KeeperExit {
  readonly code: number | null;
  readonly signal: string | null;
}

export interface Watched {
  readonly context: RunContext;
  readonly output: Pick<Output, "finish" | "lastLines">;
  /** Resolves when keeper.sh, and so the script, has ended; null where nobody saw how. */
  readonly exited: Promise<KeeperExit | null>;
  /** The process group to end, or null where it is not to be found any more. */
  readonly group: () => number | null;
  readonly remainingMs: number;
}

/** With this keeper.sh ends where the script was never started. */
const notStartedCode = 75;

/** How long what is left of a script may take to end, whose keeper was killed from outside. */
const remainsGraceMs = 2_000;

/** Sees a script through to its end: by itself, at its time-out, or when it is told to. The first reason counts. */
export function watchRun(watched: Watched): Run {
  const { context, exited, group, remainingMs } = watched;
  const terminated = Promise.withResolvers<Termination>();
  let hasEnded = false;

  function end(reason: EarlyEnd["reason"], graceMs: number): void {
    if (hasEnded) return;
    hasEnded = true;
    void terminate(group(), graceMs).then((wasForced) => terminated.resolve({ reason, wasForced }));
  }

  const timer = setTimeout(() => {
    // Where the whole machine was asleep, the script's end may be waiting to be seen in this very turn of the loop.
    setImmediate(() => end("timed_out", context.timeoutGraceMs));
  }, remainingMs);

  async function seeEnd(): Promise<Ending | NotStarted> {
    const exit = await Promise.race([exited, terminated.promise.then(() => null)]);
    clearTimeout(timer);
    if (hasEnded) return await concludeTermination(watched, await terminated.promise);
    hasEnded = true;
    return await concludeExit(watched, exit);
  }

  return { ended: seeEnd(), end };
}

interface Termination {
  readonly reason: EarlyEnd["reason"];
  readonly wasForced: boolean;
}

async function concludeTermination({ context, output }: Watched, termination: Termination): Promise<Ending> {
  const { deployment, repoPath, timeoutMs } = context;
  const survivors = findProcessesOf(deployment.id, repoPath);
  await output.finish();
  return endedEarly({ ...termination, timeoutMs, survivors, lastLines: output.lastLines() });
}

async function concludeExit(watched: Watched, exit: KeeperExit | null): Promise<Ending | NotStarted> {
  const { context, output, group } = watched;
  const exitCode = readExitCode(context.directory) ?? seenExitCode(exit);
  if (exitCode === null) await terminate(group(), remainsGraceMs);
  await output.finish();
  const lastLines = output.lastLines();
  if (exitCode !== null) return endedByItself(exitCode, lastLines);
  if (exit === null || exit.signal !== null) return killed(exit?.signal ?? null, lastLines);
  const reason = printable(lastLines.at(-1) ?? "no reason given");
  return { state: "not_started", detail: `The script could not be started (${reason}).` };
}

/** The exit code of the script where keeper.sh could not write it down, or null where there was no script. */
function seenExitCode(exit: KeeperExit | null): number | null {
  return exit === null || exit.code === notStartedCode ? null : exit.code;
}

async function terminate(group: number | null, graceMs: number): Promise<boolean> {
  return group !== null && (await terminateGroup(group, graceMs)).wasForced;
}
