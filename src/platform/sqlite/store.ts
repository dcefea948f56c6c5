import { join } from "node:path";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { codes, isOneOf, openDatabase, openOrMoveAside, type Schema } from "./open-database.ts";

export type SqlValue = SQLInputValue;

/** A row of a result, by column. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * The database, or the view of it that one project has. Each statement is prepared once; a transaction is the only way
 * to write.
 */
export interface Store {
  /** In a statement, `$project` stands for it. null: all projects, and no statement may name `$project`. */
  readonly project: string | null;
  readonly all: (sql: string, ...values: readonly SqlValue[]) => readonly Row[];
  readonly get: (sql: string, ...values: readonly SqlValue[]) => Row | undefined;
  /** @returns the id of the row inserted last and how many rows changed */
  readonly run: (sql: string, ...values: readonly SqlValue[]) => { id: number; changes: number };
  /** Runs `work` in a transaction, which is on disk when this returns. If it throws, nothing was promised. */
  readonly transaction: <Result>(work: () => Result) => Result;
  /**
   * Runs `work` in the transaction of this turn of the event loop, so that all works of a turn, of all projects, share one
   * sync of the disk. Resolves after that. If one of them throws, all are undone and rejected.
   */
  readonly batch: <Result>(work: () => Result) => Promise<Result>;
  /** The view of a project. It shares everything else. */
  readonly of: (project: string) => Store;
}

/** A database that is open. */
export interface OpenStore extends Store {
  readonly close: () => void;
  /** Where a damaged database was moved to, or null. */
  readonly movedAsideTo: string | null;
}

/**
 * Opens the database of `schema` in `directory`, which is made if it is missing. A damaged database is moved aside and
 * replaced by an empty one.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openStore(directory: string, schema: Schema): OpenStore {
  const store = openWith(directory, schema);
  // Later, because it takes the disk for a moment. Without it, pushes are only stored more slowly.
  const reserve = async () => (await import("./reserve-log.ts")).reserveLog(join(directory, schema.file));
  const timer = setTimeout(() => reserve().catch(() => {}), reserveAfterMs).unref();
  return {
    ...store,
    close() {
      clearTimeout(timer);
      store.close();
    },
  };
}

const reserveAfterMs = 1_000;

function openWith(directory: string, schema: Schema): OpenStore {
  const path = join(directory, schema.file);
  const statements = new Map<string, StatementSync>();
  let { database, movedAsideTo } = openOrMoveAside(directory, path, schema);
  let isSuspect = false;

  function prepared(sql: string): StatementSync {
    const statement = statements.get(sql) ?? database.prepare(sql);
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
    database = openDatabase(path, schema);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    isSuspect = false;
  }

  function transaction<Result>(work: () => Result): Result {
    if (isSuspect) renew();
    try {
      prepared("BEGIN IMMEDIATE").run();
      const result = work();
      prepared("COMMIT").run();
      return result;
    } catch (error) {
      isSuspect ||= isOneOf(error, [codes.ioError, codes.corrupt, codes.full, codes.cannotOpen]);
      if (database.isTransaction) database.exec("ROLLBACK");
      throw error;
    }
  }

  const batch = createBatch(transaction);

  function viewOf(project: string | null): Store {
    const named = project === null ? null : { $project: project };
    const bound = (sql: string, values: readonly SqlValue[]) => {
      if (!sql.includes("$project")) return values as SqlValue[];
      if (named === null) throw new Error(`a statement of one project is run for all: ${sql}`);
      return [named, ...values] as unknown as SqlValue[];
    };
    return {
      ...{ project, transaction, batch, of: viewOf },
      all: (sql, ...values) => prepared(sql).all(...bound(sql, values)) as Row[],
      get: (sql, ...values) => prepared(sql).get(...bound(sql, values)) as Row | undefined,
      run(sql, ...values) {
        const { lastInsertRowid, changes } = prepared(sql).run(...bound(sql, values));
        return { id: Number(lastInsertRowid), changes: Number(changes) };
      },
    };
  }

  return { ...viewOf(null), movedAsideTo, close: () => database.close() };
}

interface Work {
  readonly run: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

function createBatch(transaction: Store["transaction"]): Store["batch"] {
  let works: Work[] = [];

  function flush(): void {
    const batch = works;
    works = [];
    try {
      const results = transaction(() => batch.map(({ run }) => run()));
      batch.forEach(({ resolve }, index) => {
        resolve(results[index]);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return <Result>(run: () => Result) =>
    new Promise<Result>((resolve, reject) => {
      if (works.length === 0) setImmediate(flush);
      works.push({ run, resolve: resolve as (result: unknown) => void, reject });
    });
}
