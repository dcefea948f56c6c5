import type { Log } from "../log.ts";
import type { Store } from "../platform/sqlite/store.ts";
import type { Deployment, OutputLine, RolloutReport, Source } from "./deployment.ts";

/** A step of one attempt. `endedAtMs` is null while it goes on, and if nobody saw its end. */
export interface DeploymentStep {
  readonly attempt: number;
  readonly name: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
}

/** Logs and records that a deployment has begun a step. If the disk fails, the step is only logged: the run goes on. */
export function noteStep(store: Store, { id, attempts }: Deployment, name: string, log: Log): void {
  log.info({ event: "deployment.step", deployment: id, step: name }, `Deployment ${id}: ${name}`);
  const sql = `INSERT INTO steps (deployment_id, attempt, position, name, started_at_ms)
    VALUES (?, ?, (SELECT count(*) + 1 FROM steps WHERE deployment_id = ? AND attempt = ?), ?, ?)`;
  try {
    store.transaction(() => store.run(sql, id, attempts, id, attempts, name, Date.now()));
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "A step could not be written to disk");
  }
}

/** The steps of all attempts, in the order in which they began. */
export function listSteps(store: Store, deployment: Deployment): readonly DeploymentStep[] {
  const rows = store.all(
    "SELECT attempt, name, started_at_ms FROM steps WHERE deployment_id = ? ORDER BY attempt, position",
    deployment.id,
  );
  return rows.map((row, index) => {
    const next = rows[index + 1];
    const isLastOfAll = next === undefined && row.attempt === deployment.attempts;
    const endedAtMs =
      next?.attempt === row.attempt ? next?.started_at_ms : isLastOfAll ? deployment.finishedAtMs : null;
    return {
      attempt: Number(row.attempt),
      name: String(row.name),
      startedAtMs: Number(row.started_at_ms),
      endedAtMs: (endedAtMs as number | null | undefined) ?? null,
    };
  });
}

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
    for (let deployment = next; deployment !== null; deployment = next) {
      next = null;
      await note(store, deployment, readSource);
    }
    isReading = false;
  }

  return (deployment) => {
    next = deployment;
    if (!isReading) void readAll();
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

/** Something that happens to a deployment. */
export type DeploymentEvent =
  | { readonly kind: "line"; readonly line: OutputLine }
  | { readonly kind: "step" }
  /** Its state has changed; the database has the new one. */
  | { readonly kind: "changed" };

/** Passes the events of deployments on within this process, at once. An event without listeners costs nothing. */
export interface EventBus {
  readonly publish: (deploymentId: number, event: DeploymentEvent) => void;
  /** @returns a function that ends the subscription */
  readonly subscribe: (deploymentId: number, listener: (event: DeploymentEvent) => void) => () => void;
}

/** Makes an event bus. If a listener throws, that is logged and the other listeners still get the event. */
export function createEventBus(log: Log): EventBus {
  const listeners = new Map<number, Set<(event: DeploymentEvent) => void>>();
  return {
    publish(deploymentId, event) {
      for (const listener of listeners.get(deploymentId) ?? []) {
        try {
          listener(event);
        } catch (error) {
          log.error({ event: "control.failed", err: error }, "A follower could not be sent an event");
        }
      }
    },
    subscribe(deploymentId, listener) {
      const subscribers = listeners.get(deploymentId) ?? new Set();
      listeners.set(deploymentId, subscribers.add(listener));
      return () => {
        subscribers.delete(listener);
        if (subscribers.size === 0) listeners.delete(deploymentId);
      };
    },
  };
}
