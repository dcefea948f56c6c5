import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Deployment } from "../../src/deployments/deployment.ts";
import { columns, toDeployment } from "../../src/deployments/store.ts";
import { until } from "./until.ts";

/** The database of a service, read directly from its file. */
export interface Recorded {
  /** The id of a delivery's deployment, or null if none was recorded. */
  readonly idOf: (digest: string) => number | null;
  readonly all: (sql: string) => readonly Readonly<Record<string, unknown>>[];
}

/** Opens the database in `statePath` read-only for as long as `look` takes. */
export function readRecorded<Result>(statePath: string, look: (recorded: Recorded) => Result): Result {
  // A service that starts or stops locks the file for a moment.
  const database = new DatabaseSync(databasePath(statePath), { readOnly: true, timeout: 10_000 });
  try {
    const find = database.prepare("SELECT deployment_id FROM deliveries WHERE digest = ?");
    return look({
      idOf: (digest) => (find.get(digest)?.deployment_id as number | undefined) ?? null,
      all: (sql) => database.prepare(sql).all(),
    });
  } finally {
    database.close();
  }
}

/** The path of a service's database. */
export function databasePath(statePath: string): string {
  return join(statePath, "hotpush.db");
}

/** All deployments on disk, oldest first, read while the service runs. */
export function readDeployments(statePath: string): readonly Deployment[] {
  return readRecorded(statePath, ({ all }) =>
    all(`SELECT ${columns} FROM deployments ORDER BY id`).map((row) => toDeployment(row as never)),
  );
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

/** The steps of deployment `id`, each as `attempt: name`. */
export function readSteps(statePath: string, id: number): readonly string[] {
  const sql = `SELECT attempt, name FROM steps WHERE deployment_id = ${id} ORDER BY attempt, position`;
  return readRecorded(statePath, ({ all }) => all(sql).map((row) => `${row.attempt}: ${row.name}`));
}

/** The log of a deployment as the service keeps it. */
export function readLog(statePath: string, id: number): string {
  const path = join(statePath, "logs", `${id}.log`);
  if (!existsSync(path)) return "";
  return readFileSync(path, "utf8")
    .replaceAll(/\n\S{24}\+/g, "")
    .replaceAll(/^\S{24} /gm, "");
}

/** The number of known digests of deliveries. */
export function recordedDeliveryCount(statePath: string): number {
  return readRecorded(statePath, ({ all }) => all("SELECT 1 FROM deliveries").length);
}

/** The digest that identifies a delivery. */
export function digestOf({ body }: { readonly body: string | Buffer }): string {
  return createHash("sha256").update(body).digest("hex");
}

/**
 * Those of `accepted` (digest to id) that are not recorded under the id in their answer. One whose answer had no id, so 0, may
 * also be in the spool.
 */
export function findLost(statePath: string, accepted: Iterable<readonly [string, number]>): string[] {
  // Before the database: a push is recorded before it leaves the spool.
  const spooled = readSpool(join(statePath, "spool"));
  return readRecorded(statePath, ({ idOf }) => {
    const isLost = (digest: string, id: number) =>
      id === 0 ? idOf(digest) === null && !spooled.has(digest) : idOf(digest) !== id;
    return [...accepted]
      .filter(([digest, id]) => isLost(digest, id))
      .map(([digest, id]) => `${id} (${digest})`);
  });
}

/** The digests of the pushes in a spool. */
export function readSpool(spoolPath: string): ReadonlySet<string> {
  const names = readdirSync(spoolPath).filter((name) => name.endsWith(".push"));
  const digests = names.flatMap((name) => {
    try {
      return (JSON.parse(readFileSync(join(spoolPath, name), "utf8")) as { push: { digest: string } }).push
        .digest;
    } catch (error) {
      // It may leave the spool at any moment.
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  });
  return new Set(digests);
}
