import type { Row, Store } from "#platform/sqlite";

/** Something that was done over the page's socket by somebody who may. */
export interface AuditEntry {
  readonly atMs: number;
  /** A name, and how it was proven: "Ann (session 3)". */
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

/** More than a year of a busy team. Refused attempts are counted elsewhere, or a flood of them would push these out. */
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

/** How often somebody tried what they have no right to. */
export interface Refusals {
  /** As in an `AuditEntry`; "nobody" without a valid credential. */
  readonly visitor: string;
  readonly action: string;
  readonly count: number;
  /** Of the last one, as the page reported it. */
  readonly address: string | null;
  readonly lastAtMs: number;
}

export type NoteRefusal = (refusal: Omit<Refusals, "count">) => void;

/** A write for each would let a flood of them slow down everything else. */
const writeAfterMs = 1_000;
const refusalsKept = 1_000;

/** @param onFault gets the errors of the database; what it could not take is written with the next ones */
export function createRefusalCounter(store: () => Store, onFault: (error: unknown) => void): NoteRefusal {
  const unwritten = new Map<string, Refusals>();
  let isWaiting = false;

  function write(): void {
    isWaiting = false;
    try {
      addRefusals(store(), [...unwritten.values()]);
      unwritten.clear();
    } catch (error) {
      onFault(error);
    }
  }

  return (refusal) => {
    const key = `${refusal.action} ${refusal.visitor}`;
    unwritten.set(key, { ...refusal, count: (unwritten.get(key)?.count ?? 0) + 1 });
    if (!isWaiting) setTimeout(write, writeAfterMs).unref();
    isWaiting = true;
  };
}

function addRefusals(store: Store, refusals: readonly Refusals[]): void {
  const sql = `INSERT INTO refusals (visitor, action, count, address, last_at_ms) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (visitor, action) DO UPDATE SET
      count = count + excluded.count, address = excluded.address, last_at_ms = excluded.last_at_ms`;
  store.transaction(() => {
    for (const { visitor, action, count, address, lastAtMs } of refusals)
      store.run(sql, visitor, action, count, address, lastAtMs);
    const old = `DELETE FROM refusals WHERE last_at_ms <
      (SELECT last_at_ms FROM refusals ORDER BY last_at_ms DESC LIMIT 1 OFFSET ?)`;
    store.run(old, refusalsKept);
  });
}

/** The latest first. */
export function listRefusals(store: Store): readonly Refusals[] {
  return store.all("SELECT * FROM refusals ORDER BY last_at_ms DESC").map((row) => ({
    visitor: String(row.visitor),
    action: String(row.action),
    count: Number(row.count),
    address: row.address as string | null,
    lastAtMs: Number(row.last_at_ms),
  }));
}
