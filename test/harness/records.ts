import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { columns, toDeployment } from "../../src/deployments/store.ts";
import { databasePath } from "./database.ts";
import { until } from "./until.ts";

/** All deployments on disk, oldest first, read while the service runs. */
export function readDeployments(statePath: string): readonly Deployment[] {
  return readRows(statePath, `SELECT ${columns} FROM deployments ORDER BY id`).map(toDeployment);
}

/** The steps of deployment `id`, each as `attempt: name`. */
export function readSteps(statePath: string, id: number): readonly string[] {
  const sql = `SELECT attempt, name FROM steps WHERE deployment_id = ${id} ORDER BY attempt, position`;
  return readRows(statePath, sql).map((row) => `${row.attempt}: ${row.name}`);
}

/** Waits until deployment `id` is as `matches` says. */
export function untilDeployment(
  statePath: string,
  id: number,
  matches: (deployment: Deployment) => boolean,
): Promise<Deployment> {
  return until(`deployment ${id}`, () =>
    readDeployments(statePath).find((deployment) => deployment.id === id && matches(deployment)),
  );
}

/** The log of a deployment as the service keeps it. */
export function readLog(statePath: string, id: number): string {
  const path = join(statePath, "logs", `${id}.log`);
  if (!existsSync(path)) return "";
  return readFileSync(path, "utf8")
    .replaceAll(/\n\S{24}\+/g, "")
    .replaceAll(/^\S{24} /gm, "");
}

function readRows(statePath: string, sql: string) {
  const database = new DatabaseSync(databasePath(statePath), { readOnly: true, timeout: 5_000 });
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}
