import { constants } from "node:os";
import { formatDuration } from "#config/duration";
import type { Ending } from "#deployments/deployment";
import { checkedOutCommit } from "#platform/git";
import { printable } from "#platform/terminal";
import type { SystemUser } from "#platform/users";
import type { Problem } from "#problems";
import type { ProcessEntry } from "./processes.ts";
import { type RunDirectory, readVerified } from "./supervisor.ts";

/** How many of the last lines the record of a timed-out deployment keeps. */
const shownLines = 10;
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
export async function endedByItself(
  run: CheckedRun,
  exitCode: number,
  lastLines: readonly string[],
): Promise<Ending> {
  const fault = exitCode === 0 ? await findOtherCommit(run) : null;
  if (fault === null) return endingOf(exitCode, lastLines);
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
    const found = deployed === null ? "no commit" : deployed.slice(0, 7);
    return `${found} is checked out and not ${verified.slice(0, 7)}, whose signature was verified: what runs now may be unsigned`;
  } catch (error) {
    return `the commit could not be compared (${(error as Error).message})`;
  }
}

/** The ending of a run whose script exited with `exitCode`. */
export function endingOf(exitCode: number, lastLines: readonly string[]): Ending {
  if (exitCode === 0) return { state: "succeeded", exitCode, problem: null };
  return { state: "failed", exitCode, problem: failure(exitCode, lastLines) };
}

/** The ending of a run whose script was killed, but not by this service. */
export function killed(signal: string | null, lastLines: readonly string[]): Ending {
  const by = signal === null ? "from outside" : `by ${signal}`;
  const detail = `deploy.sh was killed ${by}, for example because memory ran out. ${lastLineOf(lastLines)}`;
  return { state: "failed", exitCode: null, problem: { code: "script_killed", detail } };
}

/** The ending of a run that was killed together with its service, as when a container is killed. */
export function killedWithService(lastLines: readonly string[]): Ending {
  const detail = `Hotpush and deploy.sh were killed while deploy.sh ran; the deployment runs again. ${lastLineOf(lastLines)}`;
  return { state: "interrupted", exitCode: null, problem: { code: "deployment_interrupted", detail } };
}

export interface EarlyEnd {
  readonly reason: "timed_out" | "cancelled" | "interrupted";
  readonly wasForced: boolean;
  readonly timeoutMs: number;
  readonly survivors: readonly ProcessEntry[];
  /** The processes that ran at the time-out, one per line. */
  readonly processes: readonly string[];
  /** The step that ran, or null if the script announced none. */
  readonly step: string | null;
  readonly lastLines: readonly string[];
}

/** The ending of a run that this service ended. */
export function endedEarly(early: EarlyEnd): Ending {
  const { reason, wasForced, timeoutMs, survivors, lastLines } = early;
  const how = wasForced ? "It did not exit on SIGTERM and was killed." : "It exited on SIGTERM.";
  const left = survivors
    .map(({ pid, command }) => `${pid} (${printable(command, longestCommand)})`)
    .join(", ");
  const leftover = left === "" ? "" : ` These of its processes still run: ${left}.`;
  const end = `${how}${leftover} ${lastLineOf(lastLines)}`;
  switch (reason) {
    case "timed_out": {
      const where = early.step === null ? "" : ` It was in the step ${printable(early.step)}.`;
      const detail = `deploy.sh ran for longer than ${formatDuration(timeoutMs)}, the value of DEPLOY_TIMEOUT.${where} ${end}${evidence(early)}`;
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

/** Lines below the sentence that show a person what the script was waiting for. */
function evidence({ lastLines, processes }: EarlyEnd): string {
  const lines = lastLines.filter((line) => line.trim() !== "").slice(-shownLines);
  const shown = lines.map((line) => printable(line));
  const block = (title: string, texts: readonly string[]) =>
    ["", title, ...texts.map((text) => `  ${text}`)].join("\n");
  const printed = shown.length > 1 ? block("Its last lines:", shown) : "";
  return printed + (processes.length > 0 ? block("Its processes at the time-out:", processes) : "");
}

function failure(exitCode: number, lastLines: readonly string[]): Problem {
  const signal = signalOf(exitCode);
  if (signal !== null) {
    const detail = `deploy.sh, or a command in it, was killed by ${signal} (exit code ${exitCode}). ${lastLineOf(lastLines)}`;
    return { code: "script_killed", detail };
  }
  return {
    code: "script_failed",
    detail: `deploy.sh ended with exit code ${exitCode}${meaning(exitCode)}. ${lastLineOf(lastLines)}`,
  };
}

/** A shell exits with 128 plus the number of the signal that killed its last command. */
function signalOf(exitCode: number): string | null {
  const entry = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return entry?.[0] ?? null;
}

function meaning(exitCode: number): string {
  if (exitCode === 126) return ": a command in it could not be run";
  return exitCode === 127 ? ": a command in it is not installed or not in the PATH" : "";
}

function lastLineOf(lines: readonly string[]): string {
  const last = lines.findLast((line) => line.trim() !== "");
  return last === undefined ? "It printed nothing." : `Its last line: ${printable(last)}`;
}
