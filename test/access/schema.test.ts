import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { pino } from "pino";
import { accessIn } from "../../src/access/schema.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("sessions and tokens of a newer Hotpush are refused, and left as they are", (t) => {
  const directory = temporaryDirectory(t);
  const log = pino({ level: "silent" });
  const first = accessIn(directory, log);
  first.store();
  first.close();
  const database = new DatabaseSync(join(directory, "access.db"));
  database.exec("ALTER TABLE sessions RENAME COLUMN agent TO client; PRAGMA user_version = 2");
  database.close();
  assert.throws(
    () => accessIn(directory, log).store(),
    isProblem("state_unusable", /access.db has version 2, .* Start the Hotpush that made it/),
  );
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.includes("corrupt")),
    [],
  );
});
