import type { Log } from "#log";
import type { Store } from "#platform/sqlite";
import type { Deployment } from "./deployment.ts";

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
