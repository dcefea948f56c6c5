import type { Schema } from "../platform/sqlite/open-database.ts";

const tables = `
  CREATE TABLE pushes (
    seq            INTEGER PRIMARY KEY AUTOINCREMENT,
    project        TEXT NOT NULL,
    push           TEXT NOT NULL,     -- JSON
    received_at_ms INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE inbox (id TEXT NOT NULL) STRICT;
  CREATE TABLE probes (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;`;

/** The pushes that `receive` has stored. */
export const inboxSchema: Schema = {
  file: "inbox.db",
  checkedTable: "pushes",
  tables,
  migrations: [],
};
