import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export interface RecordedRow {
  readonly id: number;
  readonly ref: string;
  readonly commit: string;
  readonly state: string;
  /** The trigger: a push, catch-up, a person. */
  readonly trigger: string;
}

/** The deployments on disk, oldest first, read without the service. */
export function recordedDeployments(statePath: string): readonly RecordedRow[] {
  const database = open(statePath);
  try {
    return database
      .prepare('SELECT id, ref, commit_id AS "commit", state, trigger FROM deployments ORDER BY id')
      .all() as unknown as RecordedRow[];
  } finally {
    database.close();
  }
}

/** How often a script was started again, after an interrupted run. */
export function countRepeatedRuns(statePath: string): number {
  const database = open(statePath);
  try {
    const sql = "SELECT coalesce(sum(attempts - 1), 0) AS count FROM deployments WHERE attempts > 1";
    return Number(database.prepare(sql).get()?.count);
  } finally {
    database.close();
  }
}

/** The state of the deployment of every delivery, by the delivery's digest, including those pruned from the history. */
export function recordedStates(statePath: string): ReadonlyMap<string, string> {
  const database = open(statePath);
  try {
    const sql = `SELECT digest, coalesce(deployments.state, last_state) AS state
      FROM deliveries LEFT JOIN deployments ON deployments.id = deployment_id`;
    return new Map(
      database
        .prepare(sql)
        .all()
        .map(({ digest, state }) => [String(digest), String(state)]),
    );
  } finally {
    database.close();
  }
}

/** The number of known digests of deliveries. */
export function recordedDeliveryCount(statePath: string): number {
  const database = open(statePath);
  try {
    return Number(database.prepare("SELECT count(*) AS count FROM deliveries").get()?.count);
  } finally {
    database.close();
  }
}

/** The host's id of the last delivery that is known of a secret, null if there is none. */
export function lastDeliveryOfSecret(statePath: string): string | null {
  const database = open(statePath);
  try {
    return (database.prepare("SELECT delivery_id AS id FROM secret_uses").get()?.id as string | null) ?? null;
  } finally {
    database.close();
  }
}

/** A service that starts or stops locks the file for a moment. */
function open(statePath: string): DatabaseSync {
  return new DatabaseSync(databasePath(statePath), { readOnly: true, timeout: 10_000 });
}

/** The path of a service's database. */
export function databasePath(statePath: string): string {
  return join(statePath, "hotpush.db");
}
