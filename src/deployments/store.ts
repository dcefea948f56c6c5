import { join } from "node:path";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { openDatabase, openOrMoveAside } from "./open-database.ts";

export type SqlValue = SQLInputValue;

/** A row of a result, by column. */
export type Row = Readonly<Record<string, unknown>>;

/** The database. Each statement is prepared once; a transaction is the only way to write. */
export interface Store {
  readonly all: (sql: string, ...values: readonly SqlValue[]) => readonly Row[];
  readonly get: (sql: string, ...values: readonly SqlValue[]) => Row | undefined;
  /** @returns the id of the row inserted last and how many rows changed */
  readonly run: (sql: string, ...values: readonly SqlValue[]) => { id: number; changes: number };
  /** Runs `work` in a transaction, which is on disk when this returns. If it throws, nothing was promised. */
  readonly transaction: <Result>(work: () => Result) => Result;
  readonly close: () => void;
  /** Where a damaged database was moved to, or null. */
  readonly movedAsideTo: string | null;
}

/**
 * Opens the database in `directory`, which is made if it is missing, and brings its schema up to date.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openStore(directory: string): Store {
  const path = join(directory, "hotpush.db");
  const opened = openOrMoveAside(directory, path);
  let database = opened.database;
  const statements = new Map<string, StatementSync>();
  let isSuspect = false;

  function prepared(sql: string): StatementSync {
    const known = statements.get(sql);
    if (known) return known;
    const statement = database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }

  /**
   * After a failed write the page cache of the write-ahead log cannot be trusted: the kernel may have marked pages clean
   * that never reached the disk. So this throws the handle away, then moves the log into the database and syncs it,
   * before anything new is promised.
   */
  function renew(): void {
    statements.clear();
    if (database.isOpen) database.close();
    database = openDatabase(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    isSuspect = false;
  }

  return {
    movedAsideTo: opened.movedAsideTo,
    all: (sql, ...values) => prepared(sql).all(...values) as Row[],
    get: (sql, ...values) => prepared(sql).get(...values) as Row | undefined,
    run(sql, ...values) {
      const { lastInsertRowid, changes } = prepared(sql).run(...values);
      return { id: Number(lastInsertRowid), changes: Number(changes) };
    },
    transaction(work) {
      if (isSuspect) renew();
      try {
        prepared("BEGIN IMMEDIATE").run();
        const result = work();
        prepared("COMMIT").run();
        return result;
      } catch (error) {
        isSuspect ||= isStorageFault(error);
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
    close: () => database.close(),
  };
}

/** True for errors of SQLite that come from the disk and not from a statement. */
function isStorageFault(error: unknown): boolean {
  const ioError = 10;
  const corrupt = 11;
  const full = 13;
  const cannotOpen = 14;
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && [ioError, corrupt, full, cannotOpen].includes(errcode & 0xff);
}
