import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { type Deployment, findDeployment } from "../../src/deployments/deployment.ts";
import { recordPush } from "../../src/deployments/record.ts";
import { settle } from "../../src/deployments/record-ending.ts";
import { deploymentsSchema } from "../../src/deployments/schema.ts";
import { claimNext } from "../../src/deployments/states.ts";
import { digestOf, idOf, lastNumber, writeOldDatabase } from "../harness/old-database.ts";
import { commitOf, openDefault, pushOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

for (let version = 1; version < deploymentsSchema.migrations.length; version += 1) {
  test(`a database of version ${version} is migrated with all that it holds`, (t) => {
    const directory = temporaryDirectory(t);
    const before = writeOldDatabase(directory, version);
    const store = openDefault(directory);
    t.after(() => store.close());
    assert.equal(store.movedAsideTo, null);
    assert.equal(store.get("PRAGMA user_version")?.user_version, deploymentsSchema.migrations.length);
    for (const [table, rows] of before) {
      const after = store.all(`SELECT * FROM ${table}`);
      assert.equal(after.length, rows.length, table);
      for (const [index, row] of rows.entries()) assert.partialDeepStrictEqual({ ...after[index] }, row);
    }
    assert.equal(store.get("SELECT count(*) AS n FROM deployments WHERE project <> 'default'")?.n, 0);
    const next = store.transaction(() => recordPush(store, pushOf()));
    assert.equal(next.deployment.id, lastNumber + 1, "no number is given twice");
  });

  test(`a migrated database of version ${version} keeps its queue and its deliveries`, (t) => {
    const directory = temporaryDirectory(t);
    writeOldDatabase(directory, version);
    const store = openDefault(directory);
    t.after(() => store.close());
    const claim = () => store.transaction(() => claimNext(store));
    const known = store.transaction(() => recordPush(store, pushOf({ digest: digestOf("succeeded") })));
    assert.equal(known.kind, "duplicate");
    assert.equal(known.deployment.id, idOf("succeeded"));
    assert.equal(claim(), null);
    const running = findDeployment(store, idOf("running")) as Deployment;
    assert.equal(running.state, "running");
    store.transaction(() => settle(store, running, { state: "succeeded", exitCode: 0, problem: null }));
    const claimed = claim();
    assert.equal(claimed?.id, idOf("queued"));
    assert.equal(claimed?.commit, commitOf("queued"));
    assert.equal(claimed?.attempts, 1);
    assert.equal(claim(), null);
  });
}

test("the steps lead to the same tables and indexes as a new database has", (t) => {
  const shapeOf = (sqls: readonly string[]) => {
    const database = new DatabaseSync(":memory:");
    t.after(() => database.close());
    for (const sql of sqls) database.exec(sql);
    const texts = database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").all();
    return texts.map(({ type, name, sql }) => [
      type,
      name,
      plain(String(sql)),
      columnsOf(database, String(name)),
    ]);
  };
  assert.deepEqual(shapeOf(deploymentsSchema.migrations), shapeOf([deploymentsSchema.tables]));
});

/** The text of a definition without comments and layout. */
function plain(sql: string): string {
  return sql.replace(/--.*$/gm, "").replace(/"/g, "").replace(/\s+/g, "");
}

function columnsOf(database: DatabaseSync, table: string) {
  return database.prepare("SELECT * FROM pragma_table_xinfo(?)").all(table);
}

test("while an update goes on, the Hotpush of version 4 still records pushes", (t) => {
  const directory = temporaryDirectory(t);
  writeOldDatabase(directory, 4);
  const old = new DatabaseSync(join(directory, "hotpush.db"));
  t.after(() => old.close());
  const insert = `INSERT INTO deployments (trigger, ref, before_commit, commit_id, repository, host, delivery_id, pusher,
    requested_by, state, queue_order, created_at_ms) VALUES ('push', 'refs/heads/main', NULL, ?, NULL, 'github', NULL, NULL,
    NULL, 'queued', 1000, 1)`;
  const remember =
    "INSERT INTO deliveries (digest, deployment_id, ref, commit_id, received_at_ms) VALUES (?, ?, 'refs/heads/main', ?, 1)";
  const [first, second] = [old.prepare(insert), old.prepare(remember)];
  const store = openDefault(directory);
  t.after(() => store.close());
  const { lastInsertRowid } = first.run(commitOf("late"));
  second.run("a digest", Number(lastInsertRowid), commitOf("late"));
  const known = store.transaction(() => recordPush(store, pushOf({ digest: "a digest" })));
  assert.deepEqual([known.kind, known.deployment.id], ["duplicate", Number(lastInsertRowid)]);
});
