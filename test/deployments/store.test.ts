import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { recordPush } from "../../src/deployments/queue.ts";
import { isProblem } from "../harness/problems.ts";
import { openDefault, pushOf, temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a new database has the newest schema, a write-ahead log and full syncs", (t) => {
  const store = temporaryStore(t);
  assert.equal(store.get("PRAGMA user_version")?.user_version, 1);
  assert.equal(store.get("PRAGMA journal_mode")?.journal_mode, "wal");
  assert.equal(store.get("PRAGMA synchronous")?.synchronous, 2);
});

test("a database made by a newer Hotpush is refused and left as it is", (t) => {
  const directory = temporaryDirectory(t);
  openDefault(directory).close();
  const database = new DatabaseSync(join(directory, "hotpush.db"));
  database.exec("PRAGMA user_version = 2");
  database.close();
  assert.throws(() => openDefault(directory), isProblem("state_unusable"));
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.includes("corrupt")),
    [],
  );
});

test("the database itself refuses a second running deployment", (t) => {
  const store = temporaryStore(t);
  const makeTwoRun = () =>
    store.transaction(() => {
      recordPush(store, pushOf({ ref: "refs/heads/main" }));
      recordPush(store, pushOf({ ref: "refs/heads/master" }));
      store.run("UPDATE deployments SET state = 'running' WHERE id = 1");
      store.run("UPDATE deployments SET state = 'running' WHERE id = 2");
    });
  assert.throws(makeTwoRun, /UNIQUE constraint failed/);
  assert.equal(store.get("SELECT count(*) AS n FROM deployments")?.n, 0);
});

test("a state directory that is a file, or a database that is a directory, is refused and stays", (t) => {
  const directory = temporaryDirectory(t);
  const path = join(directory, "state");
  writeFileSync(path, "");
  mkdirSync(join(directory, "hotpush.db"));
  for (const unusable of [path, directory])
    assert.throws(() => openDefault(unusable), isProblem("state_unusable", /STATE_PATH/));
  assert.ok(statSync(path).isFile() && statSync(join(directory, "hotpush.db")).isDirectory());
});

test("instances that open a new state directory at the same moment all get it", async (t) => {
  const openers = Array.from({ length: 4 }, () => fork(new URL("../harness/opener.ts", import.meta.url)));
  t.after(() => {
    for (const opener of openers) opener.kill();
  });
  await Promise.all(openers.map((opener) => once(opener, "message")));
  const root = temporaryDirectory(t);
  for (let round = 0; round < 20; round += 1) {
    const order = { directory: join(root, String(round)), atMs: Date.now() + 5 };
    const outcomes = openers.map(async (opener) => {
      opener.send(order);
      return (await once(opener, "message"))[0];
    });
    assert.deepEqual(await Promise.all(outcomes), Array(4).fill("opened"));
  }
});
