import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { databasePath } from "./database.ts";
import type { Delivery } from "./delivery.ts";

/** The database of a service, read directly from its file. */
export interface Recorded {
  /** The id of a delivery's deployment, or null if none was recorded. */
  readonly idOf: (digest: string) => number | null;
  readonly all: (sql: string) => readonly Readonly<Record<string, unknown>>[];
}

/** Opens the database in `statePath` read-only for as long as `look` takes. */
export function readRecorded<Result>(statePath: string, look: (recorded: Recorded) => Result): Result {
  const database = new DatabaseSync(databasePath(statePath), { readOnly: true, timeout: 5_000 });
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
  const texts = names.flatMap((name) => readIfThere(join(spoolPath, name)) ?? []);
  return new Set(texts.map((text) => (JSON.parse(text) as { push: { digest: string } }).push.digest));
}

/** It may leave the spool at any moment. */
function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** The digest that identifies a delivery. */
export function digestOf({ body }: Delivery): string {
  return createHash("sha256").update(body).digest("hex");
}
