import type { Problem } from "../problems.ts";
import type { Deployment, DeploymentState } from "./deployment.ts";
import { isFinished, isLegal } from "./states.ts";
import type { Store } from "./store.ts";

export interface MoveDetails {
  readonly supersededBy?: number;
  readonly exitCode?: number | null;
  readonly problem?: Problem | null;
}

/** A move that the table of states, or the state that a deployment is in by now, does not allow. */
export class IllegalMove extends Error {
  override readonly name = "IllegalMove";
}

/**
 * Moves a deployment to another state; to be called in a transaction. All changes of state but the claim go this way.
 *
 * @throws IllegalMove where the table of states has no such move, or the deployment is in another state by now
 */
export function move(
  store: Store,
  deployment: Pick<Deployment, "id" | "state">,
  to: DeploymentState,
  details: MoveDetails = {},
): void {
  const { id, state: from } = deployment;
  if (!isLegal(from, to)) throw new IllegalMove(`deployment ${id} cannot go from ${from} to ${to}`);
  const { changes } = store.run(
    `UPDATE deployments SET state = ?, superseded_by = ?, exit_code = ?, problem_code = ?, problem_detail = ?,
       finished_at_ms = ? WHERE id = ? AND state = ?`,
    to,
    details.supersededBy ?? null,
    details.exitCode ?? null,
    details.problem?.code ?? null,
    details.problem?.detail ?? null,
    isFinished(to) ? Date.now() : null,
    id,
    from,
  );
  if (changes !== 1) throw new IllegalMove(`deployment ${id} is not ${from} any more`);
  if (to === "queued") putLast(store, id);
}

/** The place in the queue of what is queued now: behind all others. */
export const lastInQueue = "(SELECT coalesce(max(queue_order), 0) + 1 FROM deployments)";

function putLast(store: Store, id: number): void {
  store.run(`UPDATE deployments SET queue_order = ${lastInQueue} WHERE id = ?`, id);
}
