import type { Store } from "../platform/sqlite/store.ts";
import type { Deployment, RolloutReport, Source } from "./deployment.ts";

/** Reads what a run has checked out, null if that is not known. Never rejects. */
export type ReadSource = (deployment: Deployment, state: Deployment["state"]) => Promise<Source | null>;

/** Records what a run has checked out, before it is settled. Call it in a transaction. */
export function recordSource(store: Store, { id, attempts }: Deployment, source: Source): void {
  store.run(
    `UPDATE deployments SET checked_out_commit = ?, subject = ?, author = ?
     WHERE id = ? AND attempts = ? AND state = 'running'`,
    ...[source.checkedOutCommit, source.subject, source.author, id, attempts],
  );
}

/** Records what the roll-out of a run reported, before it is settled. Call it in a transaction. */
export function recordRollout(store: Store, { id, attempts }: Deployment, report: RolloutReport): void {
  store.run(
    "UPDATE deployments SET live_at_ms = ?, requests = ? WHERE id = ? AND attempts = ? AND state = 'running'",
    ...[report.liveAtMs, report.requests && JSON.stringify(report.requests), id, attempts],
  );
}

/**
 * Makes the function that records what is checked out while a script runs, so that people see early what is deployed.
 * Call it when a step begins, because the step before may have pulled. It reads one at a time: the steps that begin
 * during a reading share the next one.
 */
export function createSourceNote(store: Store, readSource: ReadSource): (deployment: Deployment) => void {
  let next: Deployment | null = null;
  let isReading = false;

  async function readAll(): Promise<void> {
    isReading = true;
    try {
      for (let deployment = next; deployment !== null; deployment = next) {
        next = null;
        await note(store, deployment, readSource);
      }
    } finally {
      isReading = false;
    }
  }

  return (deployment) => {
    next = deployment;
    if (!isReading) readAll().catch(() => {});
  };
}

async function note(store: Store, deployment: Deployment, readSource: ReadSource): Promise<void> {
  try {
    const source = await readSource(deployment, "running");
    if (source !== null) store.transaction(() => recordSource(store, deployment, source));
  } catch {
    // The disk failed, or the service is stopping: it is recorded again when the script has ended.
  }
}
