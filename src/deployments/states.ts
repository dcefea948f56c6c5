import type { DeploymentState } from "./deployment.ts";

/** Every legal move of a deployment; what is not here does not happen. */
export const transitions: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  queued: ["running", "superseded", "cancelled"],
  // back to queued: the script could not be started for the moment
  running: ["succeeded", "failed", "timed_out", "cancelled", "interrupted", "queued"],
  // an interrupted deployment runs again, unless a newer push made it pointless or it was interrupted too often
  interrupted: ["queued", "superseded", "failed"],
  // "Redeliver" at the git host means "try again"
  failed: ["queued"],
  timed_out: ["queued"],
  cancelled: ["queued"],
  succeeded: [],
  superseded: [],
};

export function isLegal(from: DeploymentState, to: DeploymentState): boolean {
  return transitions[from].includes(to);
}

/** True where nothing more will happen by itself. */
export function isFinished(state: DeploymentState): boolean {
  return state !== "queued" && state !== "running" && state !== "interrupted";
}
