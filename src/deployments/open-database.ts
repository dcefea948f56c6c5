import { mkdirSync, renameSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { ProblemError } from "../problems.ts";
import { migrations } from "./migrations.ts";

const busyTimeoutMs = 2_000;

interface OpenedDatabase {
  readonly database: DatabaseSync;
  readonly movedAsideTo: string | null;
}

/**
 * Opens the database at `path` in `directory`, which is made if it is missing. A damaged database is moved aside and
 * replaced by an empty one.
 *
 * @returns the database, and where a damaged one was moved to, or null
 * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
 */
export function openOrMoveAside(directory: string, path: string): OpenedDatabase {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const database = openDatabase(path);
    checkIntegrity(database);
    return { database, movedAsideTo: null };
  } catch (error) {
    if (!isUnreadable(error)) throw unusable(directory, error);
    try {
      const movedAsideTo = moveAside(path);
      return { database: openDatabase(path), movedAsideTo };
    } catch (second) {
      throw unusable(directory, second);
    }
  }
}

/** Opens the database at `path` and brings its schema up to date, which another instance may do at the same time. */
export function openDatabase(path: string): DatabaseSync {
  const deadlineMs = performance.now() + busyTimeoutMs;
  for (;;) {
    try {
      return openOnce(path);
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadlineMs) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

function openOnce(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs });
  try {
    // With FULL, each commit is synced, so what was acknowledged survives a power cut. With NORMAL it does not.
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON");
    migrate(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * SQLITE_BUSY. SQLite waits for a lock by itself, unless waiting could end in a deadlock: if two instances switch a new
 * database to WAL at the same moment, both hold a shared lock, and one of them is refused at once.
 */
function isBusy(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && (errcode & 0xff) === 5;
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
function checkIntegrity(database: DatabaseSync): void {
  const verdicts = [
    database.prepare("PRAGMA quick_check(1)").get()?.quick_check,
    database.prepare("PRAGMA integrity_check(deployments)").get()?.integrity_check,
    hasColumns(database) ? "ok" : "columns are missing from its schema",
  ];
  const fault = verdicts.find((verdict) => verdict !== "ok");
  if (fault === undefined) return;
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
  const model = new DatabaseSync(":memory:");
  for (const migration of migrations) model.exec(migration);
  const actual = new Set(
    database
      .prepare(sql)
      .all()
      .map(({ name }) => name),
  );
  const expected = model.prepare(sql).all();
  model.close();
  return expected.every(({ name }) => actual.has(name));
}

function damaged(reason: string): Error {
  return Object.assign(new Error(`the database is damaged: ${reason}`), { errcode: 11 });
}

/** SQLITE_CORRUPT or SQLITE_NOTADB: the file is there but is not a usable database any more. */
function isUnreadable(error: unknown): boolean {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && [11, 26].includes(errcode & 0xff);
}

/** A damaged file must neither stop deployments nor be lost: somebody may still want to examine it. */
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

function unusable(directory: string, error: unknown): ProblemError {
  if (error instanceof ProblemError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const detail = `The state directory ${directory} cannot be used (${reason}). Make it writable for this user, or set STATE_PATH to one that is.`;
  return new ProblemError({ code: "state_unusable", detail }, error);
}
