import type { Problem } from "../problems.ts";
import type { Deployment, DeploymentState } from "./deployment.ts";
import type { Store } from "./store.ts";

/** Every legal transition of a deployment. No other happens. */
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

/** True if nothing more happens to a deployment in this state by itself. */
export function isFinished(state: DeploymentState): boolean {
  return state !== "queued" && state !== "running" && state !== "interrupted";
}

interface TransitionDetails {
  readonly supersededBy?: number | null;
  readonly exitCode?: number | null;
  readonly problem?: Problem | null;
}

/** The table has no such transition, or the deployment is in another state by now. */
export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
}

/**
 * Changes the state of a deployment. Call it in a transaction. Every change of state goes through here, except the
 * claim and its return to the queue.
 *
 * @throws IllegalTransition if the table has no such transition, or the deployment is in another state by now
 */
export function transition(
  store: Store,
  { id, state: from }: Pick<Deployment, "id" | "state">,
  to: DeploymentState,
  { supersededBy = null, exitCode = null, problem = null }: TransitionDetails = {},
): void {
  if (!transitions[from].includes(to)) {
    throw new IllegalTransition(`deployment ${id} cannot go from ${from} to ${to}`);
  }
  const { changes } = store.run(
    `UPDATE deployments SET state = ?, superseded_by = ?, exit_code = ?, problem_code = ?, problem_detail = ?,
       finished_at_ms = ? WHERE id = ? AND state = ?`,
    ...[to, supersededBy, exitCode, problem?.code ?? null, problem?.detail ?? null],
    ...[isFinished(to) ? Date.now() : null, id, from],
  );
  if (changes !== 1) throw new IllegalTransition(`deployment ${id} is not ${from} any more`);
  if (to === "queued") store.run(`UPDATE deployments SET queue_order = ${lastInQueue} WHERE id = ?`, id);
}

/** SQL for the last place in the queue. */
export const lastInQueue = "(SELECT coalesce(max(queue_order), 0) + 1 FROM deployments)";
