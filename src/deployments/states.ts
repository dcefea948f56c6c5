import type { Store } from "#platform/sqlite";
import type { Problem } from "#problems";
import {
  columns,
  type Deployment,
  type DeploymentState,
  findDeployment,
  lastInQueue,
  toDeployment,
} from "./deployment.ts";
import { reportEnding } from "./outbox.ts";
import { addToTotals } from "./totals.ts";

/** Every legal transition of a deployment. No other happens. */
export const transitions: Readonly<Record<DeploymentState, readonly DeploymentState[]>> = {
  queued: ["running", "superseded", "cancelled"],
  // back to queued: the script could not be started for the moment
  running: ["succeeded", "failed", "timed_out", "cancelled", "interrupted", "skipped", "queued"],
  // an interrupted deployment runs again, unless a newer push made it pointless or it was interrupted too often
  interrupted: ["queued", "superseded", "failed"],
  // "Redeliver" at the git host means "try again"
  failed: ["queued"],
  timed_out: ["queued"],
  cancelled: ["queued"],
  succeeded: [],
  skipped: [],
  superseded: [],
};

export function isState(text: string): text is DeploymentState {
  return Object.hasOwn(transitions, text);
}

/** True if nothing more happens to a deployment in this state by itself. */
export function isFinished(state: DeploymentState): boolean {
  return state !== "queued" && state !== "running" && state !== "interrupted";
}

interface TransitionDetails {
  readonly supersededBy?: number | null;
  readonly exitCode?: number | null;
  readonly problem?: Problem | null;
  readonly skipReason?: string | null;
}

/** The table has no such transition, or the deployment is in another state by now. */
export class IllegalTransition extends Error {
  override readonly name = "IllegalTransition";
}

/**
 * Changes the state of a deployment. Call it in a transaction. Every change of state goes through here, except the
 * claim and its return to the queue, below.
 *
 * @throws IllegalTransition if the table has no such transition, or the deployment is in another state by now
 */
export function transition(
  store: Store,
  { id, state: from }: Pick<Deployment, "id" | "state">,
  to: DeploymentState,
  { supersededBy = null, exitCode = null, problem = null, skipReason = null }: TransitionDetails = {},
): void {
  if (!transitions[from].includes(to)) {
    throw new IllegalTransition(`deployment ${id} cannot go from ${from} to ${to}`);
  }
  const { changes } = store.run(
    `UPDATE deployments SET state = ?, superseded_by = ?, exit_code = ?, problem_code = ?, problem_detail = ?,
       skip_reason = ?, wait_reason = NULL, finished_at_ms = ? WHERE id = ? AND state = ?`,
    ...[to, supersededBy, exitCode, problem?.code ?? null, problem?.detail ?? null],
    ...[skipReason, isFinished(to) ? Date.now() : null, id, from],
  );
  if (changes !== 1) throw new IllegalTransition(`deployment ${id} is not ${from} any more`);
  if (to === "queued") store.run(`UPDATE deployments SET queue_order = ${lastInQueue} WHERE id = ?`, id);
  if (isFinished(to)) noteEnding(store, id);
}

function noteEnding(store: Store, id: number): void {
  reportEnding(store, id);
  const deployment = findDeployment(store, id);
  if (deployment !== null) addToTotals(store, deployment);
}

/**
 * Claims the next deployment in the queue of a project, if there is one, none is running and it is not paused. Call it in
 * a transaction. The attempt is counted here, before anything can go wrong with it.
 *
 * @param resting deployments that wait for something else than their turn
 */
export function claimNext(store: Store, resting: readonly number[] = []): Deployment | null {
  const row = store.get(
    `UPDATE deployments SET state = 'running', attempts = attempts + 1, started_at_ms = ?, finished_at_ms = NULL,
       cancel_asked_at_ms = NULL, cancelled_by = NULL, checked_out_commit = NULL, subject = NULL, author = NULL,
       live_at_ms = NULL, requests = NULL, wait_reason = NULL, queue_order = ${lastInQueue}
     WHERE id = (SELECT id FROM deployments WHERE project = $project AND state = 'queued'
         AND id NOT IN (SELECT value FROM json_each(?)) ORDER BY queue_order LIMIT 1)
       AND NOT EXISTS (SELECT 1 FROM deployments WHERE project = $project AND state = 'running')
       AND NOT EXISTS (SELECT 1 FROM pauses WHERE project = $project)
     RETURNING ${columns}`,
    Date.now(),
    JSON.stringify(resting),
  );
  return row ? toDeployment(row) : null;
}

/**
 * Puts a claimed deployment back at the front of the queue. It could not be started, which does not count as an attempt.
 *
 * @param waitReason why it waits, for a person; null if that is not its own fault
 */
export function putBack(store: Store, { id }: Deployment, waitReason: string | null = null): void {
  store.run(
    `UPDATE deployments SET state = 'queued', attempts = attempts - 1, started_at_ms = NULL, wait_reason = ?,
       queue_order = (SELECT min(queue_order) FROM deployments) - 1 WHERE id = ? AND state = 'running'`,
    ...[waitReason, id],
  );
}
