import type { Deployment, Source } from "./deployment.ts";
import type { Store } from "./store.ts";

/** Reads the sources of a run, null if they are not known. Never rejects. */
export type ReadSource = (deployment: Deployment, state: Deployment["state"]) => Promise<Source | null>;

/** Records what git said of a run that is under way, or about to be settled; to be called in a transaction. */
export function recordSource(store: Store, { id, attempts }: Deployment, source: Source): void {
  store.run(
    `UPDATE deployments SET checked_out_commit = ?, subject = ?, author = ?
     WHERE id = ? AND attempts = ? AND state = 'running'`,
    source.checkedOutCommit,
    source.subject,
    source.author,
    id,
    attempts,
  );
}

/**
 * Makes the function that reads the sources while a script runs, so that people see early what is deployed: to be
 * called whenever a step begins, because the one before may have pulled. It reads one at a time: steps that begin
 * meanwhile share the next reading.
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
    // The disk, or a service that is stopping: it is written again when the script has ended.
  }
}
