import type { Store } from "#platform/sqlite";

/** Something that was done over the page's socket by somebody who may. */
export interface AuditEntry {
  readonly atMs: number;
  /** A name, and how it was proven: "Ann (session 3)". */
  readonly visitor: string;
  /** The name of the call, such as `deploy`. */
  readonly action: string;
  readonly project: string | null;
  readonly deployment: number | null;
  /** Of the visitor, as the page reported it. */
  readonly address: string | null;
  /** The status of the answer. */
  readonly status: number;
}

/** More than a year of a busy team. */
const entriesKept = 20_000;

export function noteAction(store: Store, entry: AuditEntry): void {
  const { atMs, visitor, action, project, deployment, address, status } = entry;
  store.transaction(() => {
    const sql = `INSERT INTO audit (at_ms, visitor, action, project, deployment, address, status)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    const { id } = store.run(sql, atMs, visitor, action, project, deployment, address, status);
    store.run("DELETE FROM audit WHERE id <= ?", id - entriesKept);
  });
}

/** The newest first. */
export function listActions(store: Store, limit: number): readonly AuditEntry[] {
  const sql = `SELECT at_ms AS atMs, visitor, action, project, deployment, address, status
    FROM audit ORDER BY id DESC LIMIT ?`;
  return store.all(sql, limit) as unknown as readonly AuditEntry[];
}
