import type { Log } from "#log";
import { type OpenStore, openStore, type Schema, type Store } from "#platform/sqlite";

/** Of a link, a session and a token only the SHA-256 is kept: who reads the file cannot sign in with it. */
const tables = `
  CREATE TABLE links (
    hash          TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('viewer', 'operator')),
    expires_at_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT, -- names it in commands
    hash            TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    role            TEXT NOT NULL CHECK (role IN ('viewer', 'operator')),
    created_at_ms   INTEGER NOT NULL,
    last_seen_at_ms INTEGER NOT NULL,
    address         TEXT,                -- as the page reported it
    agent           TEXT
  ) STRICT;
  CREATE TABLE tokens (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    hash            TEXT NOT NULL UNIQUE,
    name            TEXT NOT NULL,
    scope           TEXT NOT NULL CHECK (scope IN ('read', 'deploy')),
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER
  ) STRICT;
  -- what was done over the page's socket, by whom
  CREATE TABLE audit (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms      INTEGER NOT NULL,
    visitor    TEXT NOT NULL,
    action     TEXT NOT NULL,
    project    TEXT,
    deployment INTEGER,
    address    TEXT,
    status     INTEGER NOT NULL          -- of the answer
  ) STRICT;`;

const accessSchema: Schema = { file: "access.db", checkedTable: "sessions", tables, migrations: [] };

/** The record of who may visit. */
export interface AccessRecord {
  /**
   * Opens it when it is first asked for: most services never have a page. A damaged one is moved aside, and everybody signs
   * in again.
   *
   * @throws ProblemError `state_unusable` if it cannot be written, or was made by a newer Hotpush
   */
  readonly store: () => Store;
  readonly close: () => void;
}

export function accessIn(directory: string, log: Log): AccessRecord {
  let open: OpenStore | null = null;
  return {
    store() {
      if (open !== null) return open;
      open = openStore(directory, accessSchema);
      const { movedAsideTo: path } = open;
      const text = `The record of sessions and tokens was damaged and is now ${path}; everybody has to sign in again`;
      if (path !== null) log.error({ event: "store.moved_aside", path }, text);
      return open;
    },
    close: () => open?.close(),
  };
}
