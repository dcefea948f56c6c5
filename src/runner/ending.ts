import { constants } from "node:os";
import { formatDuration } from "../config/duration.ts";
import type { Ending } from "../deployments/deployment.ts";
import type { Problem } from "../problems.ts";
import { printable } from "./printable.ts";
import type { ProcessEntry } from "./process-table.ts";

/** What is said of a run that ended by itself with `exitCode`. */
export function endedByItself(exitCode: number, lastLines: readonly string[]): Ending {
  if (exitCode === 0) return { state: "succeeded", exitCode, problem: null };
  return { state: "failed", exitCode, problem: failure(exitCode, lastLines) };
}

/** What is said of a run whose script was killed by somebody else than us. */
export function killed(signal: string | null, lastLines: readonly string[]): Ending {
  const by = signal === null ? "from outside" : `by ${signal}`;
  const detail = `deploy.sh was killed ${by}, for example for want of memory. ${lastLineOf(lastLines)}`;
  return { state: "failed", exitCode: null, problem: { code: "script_killed", detail } };
}

export interface EarlyEnd {
  readonly reason: "timed_out" | "cancelled" | "interrupted";
  readonly wasForced: boolean;
  readonly timeoutMs: number;
  readonly survivors: readonly ProcessEntry[];
  readonly lastLines: readonly string[];
}

/** What is said of a run that we ended. */
export function endedEarly({ reason, wasForced, timeoutMs, survivors, lastLines }: EarlyEnd): Ending {
  const how = wasForced ? "It did not end when asked and was forced to." : "It ended when asked.";
  const left = survivors.map(({ pid, command }) => `${pid} (${printable(command)})`).join(", ");
  const leftover = left === "" ? "" : ` These processes of it still run: ${left}.`;
  const end = `${how}${leftover} ${lastLineOf(lastLines)}`;
  switch (reason) {
    case "timed_out": {
      const detail = `deploy.sh ran for longer than ${formatDuration(timeoutMs)}, the value of DEPLOY_TIMEOUT. ${end}`;
      return { state: "timed_out", exitCode: null, problem: { code: "deployment_timed_out", detail } };
    }
    case "cancelled":
      return { state: "cancelled", exitCode: null, problem: null };
    case "interrupted": {
      const detail = `Hotpush was stopped while deploy.sh ran; the deployment runs again when it is back. ${end}`;
      return { state: "interrupted", exitCode: null, problem: { code: "deployment_interrupted", detail } };
    }
  }
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

/** A shell ends with 128 and the number of the signal that killed its last command. */
function signalOf(exitCode: number): string | null {
  const entry = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return entry?.[0] ?? null;
}

function meaning(exitCode: number): string {
  if (exitCode === 126) return ", which says that a command in it could not be run";
  return exitCode === 127 ? ", which says that a command in it is not installed or not in the PATH" : "";
}

function lastLineOf(lines: readonly string[]): string {
  const last = lines.findLast((line) => line.trim() !== "");
  return last === undefined ? "It printed nothing." : `Its last line: ${printable(last)}`;
}
