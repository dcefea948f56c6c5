import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { ProblemError } from "../problems.ts";
import { migrations } from "./migrations.ts";

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
 * Opens the database in `directory`, which is made if it is missing, and brings its schema up to date. A damaged database
 * is moved aside and replaced by an empty one.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openStore(directory: string): Store {
  const path = join(directory, "hotpush.db");
  const statements = new Map<string, StatementSync>();
  let { database, movedAsideTo } = openOrMoveAside(directory, path);
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
    database = openDatabase(path);
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    isSuspect = false;
  }

  return {
    movedAsideTo,
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
        isSuspect ||= isOneOf(error, [codes.ioError, codes.corrupt, codes.full, codes.cannotOpen]);
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
    close: () => database.close(),
  };
}

const codes = { busy: 5, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** Whether `error` is from SQLite, with one of the primary result codes `wanted`. */
function isOneOf(error: unknown, wanted: readonly number[]): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && wanted.includes(errcode & 0xff);
}

/** A damaged file must neither stop deployments nor be lost: somebody may still want to examine it. */
function openOrMoveAside(directory: string, path: string) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    try {
      return { database: openIntact(path), movedAsideTo: null };
    } catch (error) {
      if (!isOneOf(error, [codes.corrupt, codes.notADatabase])) throw error;
      const movedAsideTo = moveAside(path);
      return { database: openDatabase(path), movedAsideTo };
    }
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const detail = `The state directory ${directory} cannot be used (${reason}). Make it writable for this user, or set STATE_PATH to one that is.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

const busyTimeoutMs = 2_000;

/**
 * Opens the database at `path` and brings its schema up to date, which another instance may do at the same time. SQLite
 * waits for a lock by itself, unless waiting could end in a deadlock: if two instances switch a new database to WAL at the
 * same moment, both hold a shared lock, and one of them is refused at once.
 */
function openDatabase(path: string): DatabaseSync {
  const deadlineMs = performance.now() + busyTimeoutMs;
  for (;;) {
    const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
    try {
      // With FULL, each commit is synced, so what was acknowledged survives a power cut. With NORMAL it does not.
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
      migrate(database);
      return database;
    } catch (error) {
      database.close();
      if (!isOneOf(error, [codes.busy]) || performance.now() > deadlineMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function migrate(database: DatabaseSync): void {
  const versionOf = () => Number(database.prepare("PRAGMA user_version").get()?.user_version);
  if (versionOf() < 0) throw damaged(`its version is ${versionOf()}`);
  if (versionOf() > migrations.length) {
    const detail = `The database has version ${versionOf()}, this Hotpush knows ${migrations.length}. Start the newer Hotpush that made it.`;
    throw new ProblemError({ code: "state_unusable", detail });
  }
  database.exec("BEGIN IMMEDIATE");
  for (let version = versionOf(); version < migrations.length; version += 1) {
    database.exec(migrations[version] ?? "");
    database.exec(`PRAGMA user_version = ${version + 1}`);
  }
  database.exec("COMMIT");
}

/** The quick check leaves out indexes, but a queue with a wrong index loses what waits in it. */
function openIntact(path: string): DatabaseSync {
  const database = openDatabase(path);
  const verdicts = [
    database.prepare("PRAGMA quick_check(1)").get()?.quick_check,
    database.prepare("PRAGMA integrity_check(deployments)").get()?.integrity_check,
    hasColumns(database) ? "ok" : "columns are missing from its schema",
  ];
  const fault = verdicts.find((verdict) => verdict !== "ok");
  if (fault === undefined) return database;
  database.close();
  throw damaged(String(fault));
}

/**
 * SQLite keeps a schema as text, so a damaged schema can still be read, as another one. Only missing columns count,
 * because every statement would fail: a database that differs otherwise holds accepted pushes and must not be moved.
 */
function hasColumns(database: DatabaseSync): boolean {
  const sql = `SELECT tables.name || '.' || columns.name AS name
    FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`;
  const namesIn = (one: DatabaseSync) =>
    one
      .prepare(sql)
      .all()
      .map(({ name }) => name);
  const model = new DatabaseSync(":memory:");
  for (const migration of migrations) model.exec(migration);
  const expected = namesIn(model);
  model.close();
  const actual = new Set(namesIn(database));
  return expected.every((name) => actual.has(name));
}

function damaged(reason: string): Error {
  return Object.assign(new Error(`the database is damaged: ${reason}`), { errcode: codes.corrupt });
}

/** @returns the path of the damaged database now */
function moveAside(path: string): string {
  const aside = `${path}.corrupt-${new Date().toISOString().replace(/[:.]/g, "-")}`;
  for (const suffix of ["", "-wal", "-shm"]) {
    try {
      renameSync(`${path}${suffix}`, `${aside}${suffix}`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  return aside;
}
