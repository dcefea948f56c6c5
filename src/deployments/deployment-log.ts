import type { Log } from "../log.ts";
import { type Deployment, type Ending, liveCommit } from "./deployment.ts";

export function logStart(log: Log, { id, trigger, ref, commit, attempts }: Deployment): void {
  const fields = { event: "deployment.started", deployment: id, trigger, ref, commit, attempt: attempts };
  log.info(fields, `Deployment ${id} started: ${ref} at ${commit.slice(0, 7)}`);
}

export function logEnding(
  log: Log,
  { id, ref, commit, checkedOutCommit }: Deployment,
  { state, exitCode, problem }: Ending,
): void {
  const fields = {
    event: `deployment.${state}`,
    deployment: id,
    ref,
    commit,
    checkedOutCommit,
    exitCode,
    code: problem?.code,
  };
  const text = problem?.detail ?? `${ref} is at ${liveCommit({ commit, checkedOutCommit }).slice(0, 7)}`;
  log[state === "succeeded" ? "info" : "error"](fields, `Deployment ${id} ${said[state]}: ${text}`);
}

export function logSuperseded(log: Log, id: number, by: number): void {
  const fields = { event: "deployment.superseded", deployment: id, by };
  log.info(fields, `Deployment ${id} is superseded by ${by}, a newer push of the branch`);
}

export function logCancelled(log: Log, id: number): void {
  log.info(
    { event: "deployment.cancelled", deployment: id },
    `Deployment ${id} was cancelled before its turn`,
  );
}

const said: Readonly<Record<Ending["state"], string>> = {
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "was cancelled",
  interrupted: "was interrupted",
};
