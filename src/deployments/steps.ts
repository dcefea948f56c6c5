import type { Log } from "../log.ts";
import type { Deployment } from "./deployment.ts";
import type { Store } from "./store.ts";

/** Notes that a deployment has begun a step. Where the disk fails it is told in the log alone: no step is worth a run. */
export function noteStep(store: Store, deployment: Deployment, name: string, log: Log): void {
  const fields = { event: "deployment.step", deployment: deployment.id, step: name };
  log.info(fields, `Deployment ${deployment.id}: ${name}`);
  try {
    store.transaction(() => recordStep(store, deployment, name));
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "A step could not be written to disk");
  }
}

function recordStep(store: Store, { id, attempts }: Deployment, name: string): void {
  store.run(
    `INSERT INTO steps (deployment_id, attempt, position, name, started_at_ms)
     VALUES (?, ?, (SELECT count(*) + 1 FROM steps WHERE deployment_id = ? AND attempt = ?), ?, ?)`,
    id,
    attempts,
    id,
    attempts,
    name,
    Date.now(),
  );
}
