import { existsSync, mkdirSync, renameSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ProblemError } from "../../problems.ts";

/** What a database holds. */
export interface Schema {
  /** The name of its file. */
  readonly file: string;
  /** The present tables, which a new database gets at once: each start also compares the database with them. */
  readonly tables: string;
  /**
   * Numbered steps to the same tables: step N takes a database from version N to N + 1 (`PRAGMA user_version`), in one
   * transaction. A released step never changes; a change of the schema is a new step.
   */
  readonly migrations: readonly string[];
  /** The table whose indexes are checked at each start: one that is wrong loses what waits in it. */
  readonly checkedTable: string;
}

export const codes = {
  busy: 5,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
} as const;

/** Whether `error` is from SQLite, with one of the primary result codes `wanted`. */
export function isOneOf(error: unknown, wanted: readonly number[]): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && wanted.includes(errcode & 0xff);
}

/**
 * Opens the database at `path` in `directory`, which is made if it is missing. A damaged file must neither stop
 * deployments nor be lost, because somebody may still want to examine it: it is moved aside.
 *
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openOrMoveAside(directory: string, path: string, schema: Schema) {
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

/**
 * Opens the database at `path` that another service has left in `directory`. A damaged one stays where it is.
 *
 * @throws ProblemError `state_unusable` if there is none, it is damaged, or was made by a newer Hotpush
 */
export function openLeft(directory: string, path: string, schema: Schema) {
  try {
    if (!existsSync(path)) throw new Error(`there is no ${schema.file}`);
    return { database: openIntact(path, schema), movedAsideTo: null };
  } catch (error) {
    if (error instanceof ProblemError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const detail = `The state in ${directory} cannot be read (${reason}). Nothing was taken from it.`;
    throw new ProblemError({ code: "state_unusable", detail }, error);
  }
}

const busyTimeoutMs = 2_000;

/**
 * Opens the database at `path` and brings its schema up to date, which another instance may do at the same time. SQLite
 * waits for a lock by itself, unless waiting could end in a deadlock: if two instances switch a new database to WAL at the
 * same moment, both hold a shared lock, and one of them is refused at once.
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

function migrate(database: DatabaseSync, { tables, migrations }: Schema): void {
  const versionOf = () => Number(database.prepare("PRAGMA user_version").get()?.user_version);
  if (versionOf() < 0) throw damaged(`its version is ${versionOf()}`);
  if (versionOf() > migrations.length) {
    const detail = `The database has version ${versionOf()}, this Hotpush knows ${migrations.length}. Start the newer Hotpush that made it.`;
    throw new ProblemError({ code: "state_unusable", detail });
  }
  database.exec("BEGIN IMMEDIATE");
  const version = versionOf();
  for (const step of version === 0 ? [tables] : migrations.slice(version)) database.exec(step);
  if (version < migrations.length) database.exec(`PRAGMA user_version = ${migrations.length}`);
  database.exec("COMMIT");
}

/** The quick check leaves out indexes. */
function openIntact(path: string, schema: Schema): DatabaseSync {
  const database = openDatabase(path, schema);
  const verdicts = [
    database.prepare("PRAGMA quick_check(1)").get()?.quick_check,
    database.prepare(`PRAGMA integrity_check(${schema.checkedTable})`).get()?.integrity_check,
    hasColumns(database, schema) ? "ok" : "columns are missing from its schema",
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
function hasColumns(database: DatabaseSync, { tables }: Schema): boolean {
  const sql = `SELECT tables.name || '.' || columns.name AS name
    FROM sqlite_schema AS tables, pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'`;
  const namesIn = (one: DatabaseSync) =>
    one
      .prepare(sql)
      .all()
      .map(({ name }) => name);
  const model = new DatabaseSync(":memory:");
  model.exec(tables);
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
