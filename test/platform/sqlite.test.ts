import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { openDatabase } from "../../src/platform/sqlite.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const columns = ["n INTEGER", "name TEXT", "age INTEGER"];

/** The schema of a version, which has one more column than the version before. */
function schemaOf(version: number) {
  return {
    file: "a.db",
    tables: `CREATE TABLE people (${columns.slice(0, version).join(", ")}) STRICT`,
    migrations: columns.slice(1, version).map((column) => `ALTER TABLE people ADD COLUMN ${column}`),
  };
}

for (const version of [1, 3]) {
  test(`a database of version ${version} gets the steps to version 3 and keeps its rows`, (t) => {
    const path = join(temporaryDirectory(t), "a.db");
    const before = openDatabase(path, schemaOf(version));
    before.exec("INSERT INTO people (n) VALUES (7)");
    before.close();
    const database = openDatabase(path, schemaOf(3));
    t.after(() => database.close());
    assert.deepEqual({ ...database.prepare("SELECT * FROM people").get() }, { n: 7, name: null, age: null });
    assert.equal(database.prepare("PRAGMA user_version").get()?.user_version, 3);
  });
}
