import { constants } from "node:os";
import { formatDuration } from "#config/values";
import type { Ending } from "#deployments/deployment";
import { printable } from "#platform/terminal";
import type { Printed } from "./log-file.ts";

/** The ending of a run whose script exited with `exitCode`; `fault`: why it has failed though that is 0. */
export function endedByItself(exitCode: number, printed: Printed, fault: string | null): Ending {
  if (fault !== null) {
    const detail = `deploy.sh exited with 0, but ${fault}. Let deploy.sh deploy exactly $DEPLOY_COMMIT, as the one of hotpush init does.`;
    return { state: "failed", exitCode, problem: { code: "other_commit_deployed", detail } };
  }
  if (exitCode === 0) return { state: "succeeded", exitCode, problem: null };
  // A shell exits with 128 plus the number of the signal that killed its last command.
  const [signal] = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128) ?? [];
  const [code, what] =
    signal === undefined
      ? (["script_failed", `The script ended with exit code ${exitCode}${meanings[exitCode] ?? ""}`] as const)
      : ([
          "script_killed",
          `The script, or a command in it, was killed by ${signal} (exit code ${exitCode})`,
        ] as const);
  return { state: "failed", exitCode, problem: { code, detail: `${what}. ${lastLineOf(printed)}` } };
}

const meanings: Readonly<Record<number, string>> = {
  126: ": a command in it could not be run",
  127: ": a command in it is not installed or not in the PATH",
};

/** The ending of a run whose script was killed, but not by this service. */
export function killed(signal: string, printed: Printed): Ending {
  const detail = `The script was killed by ${signal}, for example because memory ran out. ${lastLineOf(printed)}`;
  return { state: "failed", exitCode: null, problem: { code: "script_killed", detail } };
}

/** The ending of a run whose end nobody saw: it was killed, for example together with the container of its service. */
export function killedWithService(printed: Printed): Ending {
  const detail = `The script was killed after its Hotpush had ended; the deployment runs again. ${lastLineOf(printed)}`;
  return { state: "interrupted", exitCode: null, problem: { code: "deployment_interrupted", detail } };
}

/** Why this service ended a script. */
export type EarlyReason = "timed_out" | "cancelled" | "interrupted";

/** The ending of a run that this service ended. */
export function endedEarly(
  reason: EarlyReason,
  wasForced: boolean,
  timeoutMs: number,
  printed: Printed,
): Ending {
  if (reason === "cancelled") return { state: reason, exitCode: null, problem: null };
  const how = wasForced ? "It did not exit on SIGTERM and was killed." : "It exited on SIGTERM.";
  const where = printed.step === null ? "" : ` It was in the step ${printable(printed.step)}.`;
  const [code, why] =
    reason === "timed_out"
      ? ([
          "deployment_timed_out",
          `The script ran for longer than ${formatDuration(timeoutMs)}, the value of DEPLOY_TIMEOUT.${where}`,
        ] as const)
      : ([
          "deployment_interrupted",
          "Hotpush was stopped while the script ran; the deployment runs again when Hotpush starts.",
        ] as const);
  const detail = `${why} ${how} ${lastLineOf(printed)}`;
  return { state: reason, exitCode: null, problem: { code, detail } };
}

function lastLineOf({ lastLine }: Printed): string {
  return lastLine === null ? "It printed nothing." : `Its last line: ${printable(lastLine)}`;
}
