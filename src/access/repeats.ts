import type { Store } from "#platform/sqlite";

/** The answer to a request that a program may send again because it does not know whether it arrived. */
export interface KnownAnswer {
  /** Method, path and what was asked for. */
  readonly request: string;
  readonly status: number;
  readonly value: object;
}

const keptMs = 24 * 3_600_000;

/** @param key the Idempotency-Key of the request (draft-ietf-httpapi-idempotency-key-header) */
export function findAnswer(store: Store, visitor: string, key: string, nowMs: number): KnownAnswer | null {
  const sql = "SELECT request, status, answer FROM repeats WHERE visitor = ? AND key = ? AND at_ms > ?";
  const row = store.get(sql, visitor, key, nowMs - keptMs);
  return row === undefined
    ? null
    : {
        request: String(row.request),
        status: Number(row.status),
        value: JSON.parse(String(row.answer)) as object,
      };
}

export function keepAnswer(
  store: Store,
  { visitor, key, request, status, value }: KnownAnswer & { readonly visitor: string; readonly key: string },
  nowMs: number,
): void {
  store.transaction(() => {
    store.run("DELETE FROM repeats WHERE at_ms <= ?", nowMs - keptMs);
    const sql =
      "INSERT OR REPLACE INTO repeats (visitor, key, request, status, answer, at_ms) VALUES (?, ?, ?, ?, ?, ?)";
    store.run(sql, visitor, key, request, status, JSON.stringify(value), nowMs);
  });
}
