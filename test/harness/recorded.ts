import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { databasePath } from "./database.ts";
import type { Delivery } from "./delivery.ts";

/** The database of a service, read from its file behind the service's back. */
export interface Recorded {
  /** The id of the deployment that was recorded for a delivery, or null where there is none. */
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

/** Those of `accepted` (digest to id) that are not recorded under the id that the sender was told. */
export function findLost(statePath: string, accepted: Iterable<readonly [string, number]>): string[] {
  return readRecorded(statePath, ({ idOf }) =>
    [...accepted].filter(([digest, id]) => idOf(digest) !== id).map(([digest, id]) => `${id} (${digest})`),
  );
}

/** What a service knows a delivery by. */
export function digestOf({ body }: Delivery): string {
  return createHash("sha256").update(body).digest("hex");
}
