import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { DeploymentState } from "../../src/deployments/deployment.ts";
import { deploymentsSchema } from "../../src/deployments/schema.ts";
import { transitions } from "../../src/deployments/states.ts";
import { commitOf } from "./store.ts";

/** `skipped` came with version 5. */
export const states: readonly DeploymentState[] = (Object.keys(transitions) as DeploymentState[]).filter(
  (state) => state !== "skipped",
);
/** The number of the deployment in a state. */
export const idOf = (state: DeploymentState) => states.indexOf(state) + 1;
/** The last number that was given. */
export const lastNumber = 100;
const timeMs = 1_760_000_000_000;

/** The tables that a database of each version has to keep; `secret_uses` came with version 2. */
const tablesOf = (version: number) =>
  ["deployments", "deliveries", "steps", "probes"].concat(version > 1 ? ["secret_uses"] : []);

/**
 * Writes a database as the Hotpush whose schema was of `version` left it behind: a deployment of each state, each with
 * its delivery and a step.
 *
 * @returns the rows of every table
 */
export function writeOldDatabase(directory: string, version: number): Map<string, Record<string, unknown>[]> {
  const database = new DatabaseSync(join(directory, "hotpush.db"));
  for (const migration of deploymentsSchema.migrations.slice(0, version)) database.exec(migration);
  database.exec(`PRAGMA user_version = ${version}`);
  for (const state of states) insertDeployment(database, state);
  // Later ones were pruned.
  database.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'deployments'").run(lastNumber);
  database.prepare("INSERT INTO probes (id, at_ms) VALUES (1, ?)").run(timeMs);
  if (version > 1) {
    // Projects came with version 5.
    const project = version > 4 ? ["default"] : [];
    const values = [...project, "a1b2", timeMs, timeMs + 1, "github", "72d3162e"];
    database.prepare(`INSERT INTO secret_uses VALUES (${values.map(() => "?").join(", ")})`).run(...values);
  }
  const rowsOf = (table: string) =>
    database
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .map((row) => ({ ...row }));
  const tables = new Map(tablesOf(version).map((table) => [table, rowsOf(table)]));
  database.close();
  return tables;
}

function insertDeployment(database: DatabaseSync, state: DeploymentState): void {
  const id = idOf(state);
  const isBegun = state !== "queued" && state !== "superseded";
  database
    .prepare(
      `INSERT INTO deployments (id, trigger, ref, before_commit, commit_id, repository, host, delivery_id, state,
         queue_order, attempts, superseded_by, exit_code, problem_code, problem_detail, created_at_ms, started_at_ms,
         finished_at_ms)
       VALUES (?, 'push', 'refs/heads/main', NULL, ?, 'octo/app', 'github', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)`,
    )
    .run(
      id,
      commitOf(state),
      `delivery-${id}`,
      state,
      id,
      isBegun ? 1 : 0,
      state === "superseded" ? idOf("queued") : null,
      state === "failed" ? 3 : null,
      state === "failed" ? "script_failed" : null,
      state === "failed" ? "deploy.sh ended with exit code 3." : null,
      timeMs + id,
      isBegun ? timeMs + id + 1 : null,
    );
  database
    .prepare(
      "INSERT INTO deliveries (digest, deployment_id, ref, commit_id, received_at_ms) VALUES (?, ?, 'refs/heads/main', ?, ?)",
    )
    .run(digestOf(state), id, commitOf(state), timeMs + id);
  if (!isBegun) return;
  database.prepare("INSERT INTO steps VALUES (?, 1, 1, 'Pull', ?)").run(id, timeMs + id + 2);
}

/** The digest of the delivery of a deployment. */
export function digestOf(state: DeploymentState): string {
  return `digest of ${state}`;
}
