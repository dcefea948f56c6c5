import { existsSync, mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { ProblemError } from "#problems";
import { attempt } from "./files.ts";

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

  function viewOf(project: string | null): Store {
    const named = project === null ? null : { $project: project };
    const bound = (sql: string, values: readonly SqlValue[]) => {
      if (!sql.includes("$project")) return values as SqlValue[];
      if (named === null) throw new Error(`a statement of one project is run for all: ${sql}`);
      return [named, ...values] as unknown as SqlValue[];
    };
    return {
      project,
      transaction,
      of: viewOf,
      all: (sql, ...values) => prepared(sql).all(...bound(sql, values)) as Row[],
      get: (sql, ...values) => prepared(sql).get(...bound(sql, values)) as Row | undefined,
      run(sql, ...values) {
        const { lastInsertRowid, changes } = prepared(sql).run(...bound(sql, values));
        return { id: Number(lastInsertRowid), changes: Number(changes) };
      },
    };
  }

  const close = () => {
    if (database.isOpen) database.close();
  };
  return { ...viewOf(null), movedAsideTo, close };
}

/** What a database holds. */
export interface Schema {
  /** The name of its file. */
  readonly file: string;
  /** What a new database gets. Each start also compares the database with them. */
  readonly tables: string;
  /** Step N, counted from 1, takes a database from version N to N + 1 (`PRAGMA user_version`). A released step never changes. */
  readonly migrations: readonly string[];
}

const codes = { busy: 5, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** Whether `error` is from SQLite, with one of the primary result codes `wanted`. */
function isOneOf(error: unknown, wanted: readonly number[]): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && wanted.includes(errcode & 0xff);
}

/**
 * Opens the database at `path` in `directory`, which is made if it is missing. A damaged file must neither stop
 * deployments nor be lost, because somebody may still want to examine it: it is moved aside.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
function openOrMoveAside(directory: string, path: string, schema: Schema) {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    try {
      return { database: openIntact(path, schema), movedAsideTo: null };
    } catch (error) {
      if (!isOneOf(error, [codes.corrupt, codes.notADatabase])) throw error;
      const movedAsideTo = moveAside(path);
      return { database: openDatabase(path, schema), movedAsideTo };
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
 * Opens the database at `path` and makes its tables, which another instance may do at the same time. SQLite waits for a
 * lock by itself, unless waiting could end in a deadlock: if two instances switch a new database to WAL at the same moment,
 * both hold a shared lock, and one of them is refused at once.
 */
export function openDatabase(path: string, schema: Schema): DatabaseSync {
  const deadlineMs = performance.now() + busyTimeoutMs;
  for (;;) {
    const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
    try {
      // With FULL, each commit is synced, so what was acknowledged survives a power cut. With NORMAL it does not.
      database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
      migrate(database, schema);
      return database;
    } catch (error) {
      database.close();
      if (!isOneOf(error, [codes.busy]) || performance.now() > deadlineMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function migrate(database: DatabaseSync, { file, tables, migrations }: Schema): void {
  const versionOf = () => Number(database.prepare("PRAGMA user_version").get()?.user_version);
  const latest = migrations.length + 1;
  if (versionOf() < 0) throw damaged(`its version is ${versionOf()}`);
  if (versionOf() > latest) {
    const detail = `${file} has version ${versionOf()}, and this Hotpush uses version ${latest}. Start the Hotpush that made it.`;
    throw new ProblemError({ code: "state_unusable", detail });
  }
  database.exec("BEGIN IMMEDIATE");
  const version = versionOf();
  for (const step of version === 0 ? [tables] : migrations.slice(version - 1)) database.exec(step);
  if (version < latest) database.exec(`PRAGMA user_version = ${latest}`);
  database.exec("COMMIT");
}

/** Indexes too: by a wrong one, what waits is lost, or an ending can never be written. */
function openIntact(path: string, schema: Schema): DatabaseSync {
  const database = openDatabase(path, schema);
  const { integrity_check: verdict } = database.prepare("PRAGMA integrity_check(1)").get() ?? {};
  if (verdict === "ok" && hasColumns(database, schema)) return database;
  database.close();
  throw damaged(verdict === "ok" ? "columns are missing from its schema" : String(verdict));
}

/**
 * SQLite keeps a schema as text, so a damaged schema can still be read, as another one. Only missing columns count,
 * because every statement would fail: a database that differs otherwise holds accepted pushes and must not be moved.
 */
function hasColumns(database: DatabaseSync, { tables }: Schema): boolean {
  const sql = `SELECT tables.name || '.' || columns.name AS name
    FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`;
  const namesIn = (one: DatabaseSync) => new Set(Array.from(one.prepare(sql).iterate(), ({ name }) => name));
  using model = new DatabaseSync(":memory:");
  model.exec(tables);
  return namesIn(model).isSubsetOf(namesIn(database));
}

function damaged(reason: string): Error {
  return Object.assign(new Error(`the database is damaged: ${reason}`), { errcode: codes.corrupt });
}

/** @returns the path of the damaged database now */
function moveAside(path: string): string {
  const aside = `${path}.corrupt-${new Date().toISOString().replace(/[:.]/g, "-")}`;
  for (const suffix of ["", "-wal", "-shm"])
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${aside}${suffix}`);
  return aside;
}

/** Whether the database, which must have the table `probes`, can be written now. */
export function canWrite(store: Store): boolean {
  // A row that stays the same is not written.
  const sql =
    "INSERT INTO probes VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET at_ms = max(at_ms + 1, excluded.at_ms)";
  return attempt(() => store.transaction(() => store.run(sql, Date.now())), null) !== null;
}
