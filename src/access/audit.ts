import type { Row, Store } from "../platform/sqlite/store.ts";

/** Something that was done, or tried, over the page's socket. */
export interface AuditEntry {
  readonly atMs: number;
  /** A name, and how it was proven: "Ann (session 3)"; "nobody" if there was no valid credential. */
  readonly visitor: string;
  /** Such as `deploy`. */
  readonly action: string;
  readonly project: string | null;
  readonly deployment: number | null;
  /** Of the visitor, as the page reported it. */
  readonly address: string | null;
  /** The status of the answer. */
  readonly status: number;
}

/** More than a year of a busy team. A flood of refused attempts removes the oldest entries, and nothing else. */
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
  return store.all("SELECT * FROM audit ORDER BY id DESC LIMIT ?", limit).map(toEntry);
}

function toEntry(row: Row): AuditEntry {
  return {
    atMs: Number(row.at_ms),
    visitor: String(row.visitor),
    action: String(row.action),
    project: row.project as string | null,
    deployment: row.deployment as number | null,
    address: row.address as string | null,
    status: Number(row.status),
  };
}
