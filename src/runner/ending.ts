import { constants } from "node:os";
import { formatDuration } from "#config/values";
import type { Ending } from "#deployments/deployment";
import { shortCommit } from "#deployments/push";
import type { SystemUser } from "#platform/files";
import { checkedOutCommit } from "#platform/git";
import { printable } from "#platform/terminal";
import type { Printed } from "./log-file.ts";
import { type ProcessEntry, type RunDirectory, readVerified } from "./supervisor.ts";

const longestCommand = 100;

export interface CheckedRun {
  readonly directory: RunDirectory;
  readonly repoPath: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly user: SystemUser | null;
}

/**
 * The ending of a run whose script exited with `exitCode`. It has failed if commits must be signed, and what is checked out
 * at its end is not the one whose signature was verified, or cannot be compared with it.
 */
export async function endedByItself(run: CheckedRun, exitCode: number, printed: Printed): Promise<Ending> {
  const fault = exitCode === 0 ? await findOtherCommit(run) : null;
  if (fault === null) return endingOf(exitCode, printed);
  const detail = `deploy.sh exited with 0, but ${fault}. Let deploy.sh deploy exactly $DEPLOY_COMMIT, as the one of hotpush init does.`;
  return { state: "failed", exitCode, problem: { code: "other_commit_deployed", detail } };
}

async function findOtherCommit(run: CheckedRun): Promise<string | null> {
  const { directory, repoPath, environment: env, user } = run;
  try {
    const verified = readVerified(directory);
    if (verified === null) return null;
    const deployed = await checkedOutCommit(repoPath, { env, user });
    if (deployed === verified) return null;
    const found = deployed === null ? "no commit" : shortCommit(deployed);
    return `${found} is checked out and not ${shortCommit(verified)}, whose signature was verified: what runs now may be unsigned`;
  } catch (error) {
    return `the commit could not be compared (${(error as Error).message})`;
  }
}

function endingOf(exitCode: number, printed: Printed): Ending {
  if (exitCode === 0) return { state: "succeeded", exitCode, problem: null };
  const last = lastLineOf(printed);
  const signal = signalOf(exitCode);
  const problem =
    signal === null
      ? ({
          code: "script_failed",
          detail: `deploy.sh ended with exit code ${exitCode}${meanings[exitCode] ?? ""}. ${last}`,
        } as const)
      : ({
          code: "script_killed",
          detail: `deploy.sh, or a command in it, was killed by ${signal} (exit code ${exitCode}). ${last}`,
        } as const);
  return { state: "failed", exitCode, problem };
}

/** A shell exits with 128 plus the number of the signal that killed its last command. */
function signalOf(exitCode: number): string | null {
  const entry = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return entry?.[0] ?? null;
}

const meanings: Readonly<Record<number, string>> = {
  126: ": a command in it could not be run",
  127: ": a command in it is not installed or not in the PATH",
};

/** The ending of a run whose script was killed, but not by this service. */
export function killed(signal: string | null, printed: Printed): Ending {
  const by = signal === null ? "from outside" : `by ${signal}`;
  const detail = `deploy.sh was killed ${by}, for example because memory ran out. ${lastLineOf(printed)}`;
  return { state: "failed", exitCode: null, problem: { code: "script_killed", detail } };
}

/** The ending of a run that was killed together with its service, as when a container is killed. */
export function killedWithService(printed: Printed): Ending {
  const detail = `Hotpush and deploy.sh were killed while deploy.sh ran; the deployment runs again. ${lastLineOf(printed)}`;
  return { state: "interrupted", exitCode: null, problem: { code: "deployment_interrupted", detail } };
}

export interface EarlyEnd {
  readonly reason: "timed_out" | "cancelled" | "interrupted";
  readonly wasForced: boolean;
  readonly timeoutMs: number;
  readonly survivors: readonly Pick<ProcessEntry, "pid" | "command">[];
  readonly printed: Printed;
}

/** The ending of a run that this service ended. */
export function endedEarly({ reason, wasForced, timeoutMs, survivors, printed }: EarlyEnd): Ending {
  const how = wasForced ? "It did not exit on SIGTERM and was killed." : "It exited on SIGTERM.";
  const left = survivors
    .map(({ pid, command }) => `${pid} (${printable(command, longestCommand)})`)
    .join(", ");
  const leftover = left === "" ? "" : ` These of its processes still run: ${left}.`;
  const end = `${how}${leftover} ${lastLineOf(printed)}`;
  switch (reason) {
    case "timed_out": {
      const where = printed.step === null ? "" : ` It was in the step ${printable(printed.step)}.`;
      const detail = `deploy.sh ran for longer than ${formatDuration(timeoutMs)}, the value of DEPLOY_TIMEOUT.${where} ${end}`;
      return { state: "timed_out", exitCode: null, problem: { code: "deployment_timed_out", detail } };
    }
    case "cancelled":
      return { state: "cancelled", exitCode: null, problem: null };
    case "interrupted": {
      const detail = `Hotpush was stopped while deploy.sh ran; the deployment runs again when Hotpush starts. ${end}`;
      return { state: "interrupted", exitCode: null, problem: { code: "deployment_interrupted", detail } };
    }
  }
}

function lastLineOf({ lastLine }: Printed): string {
  return lastLine === null ? "It printed nothing." : `Its last line: ${printable(lastLine)}`;
}
