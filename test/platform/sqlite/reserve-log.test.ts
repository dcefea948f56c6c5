import assert from "node:assert/strict";
import { cpSync, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { reserveLog } from "../../../src/platform/sqlite/reserve-log.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("a reserved log keeps all commits, before, meanwhile and after, of each process", async (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, "a.db");
  const [one, other] = [open(path), open(path)];
  t.after(() => [one, other].map((database) => database.close()));
  one.exec("CREATE TABLE numbers (n INTEGER) STRICT");
  const insert = [one, other].map((database) => database.prepare("INSERT INTO numbers VALUES (?)"));
  const add = (n: number) => insert[n % 2]?.run(n);
  add(0);
  let isReserving = true;
  const reserving = reserveLog(path).finally(() => {
    isReserving = false;
  });
  let count = 1;
  for (; isReserving || count < 50; count += 1) {
    add(count);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await reserving;
  for (let more = 0; more < 50; more += 1, count += 1) add(count);
  assert(statSync(`${path}-wal`).size > 4_000_000);
  // As a crash leaves it.
  const copy = join(directory, "b.db");
  for (const suffix of ["", "-wal"]) cpSync(`${path}${suffix}`, `${copy}${suffix}`);
  const recovered = open(copy);
  t.after(() => recovered.close());
  const rows = recovered.prepare("SELECT n FROM numbers ORDER BY n").all();
  assert.deepEqual(
    rows.map(({ n }) => n),
    Array.from({ length: count }, (_, n) => n),
  );
});

test("no log is made for a database that is closed", async (t) => {
  const path = join(temporaryDirectory(t), "a.db");
  await assert.rejects(reserveLog(path), { code: "ENOENT" });
  assert(!existsSync(`${path}-wal`));
});

function open(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 2_000 });
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  return database;
}
