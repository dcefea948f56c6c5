import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { type Deployment, type DeploymentState, findDeployment } from "../../src/deployments/deployment.ts";
import { recordPush } from "../../src/deployments/record.ts";
import { deploymentsSchema } from "../../src/deployments/schema.ts";
import { settle } from "../../src/deployments/settle.ts";
import { claimNext, transitions } from "../../src/deployments/states.ts";
import { commitOf, openDefault, pushOf } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** `skipped` came with version 5. */
const states: readonly DeploymentState[] = (Object.keys(transitions) as DeploymentState[]).filter(
  (state) => state !== "skipped",
);
const idOf = (state: DeploymentState) => states.indexOf(state) + 1;
const lastNumber = 100;
const timeMs = 1_760_000_000_000;

/** The tables that a database of each version has to keep; `secret_uses` came with version 2. */
const tablesOf = (version: number) =>
  ["deployments", "deliveries", "steps", "probes"].concat(version > 1 ? ["secret_uses"] : []);

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

/**
 * Writes a database as the Hotpush whose schema was of `version` left it behind: a deployment of each state, each with
 * its delivery and a step.
 *
 * @returns the rows of every table
 */
function writeOldDatabase(directory: string, version: number): Map<string, Record<string, unknown>[]> {
  const database = new DatabaseSync(join(directory, "hotpush.db"));
  for (const migration of deploymentsSchema.migrations.slice(0, version)) database.exec(migration);
  database.exec(`PRAGMA user_version = ${version}`);
  for (const state of states) insertDeployment(database, state);
  // Later ones were pruned.
  database.prepare("UPDATE sqlite_sequence SET seq = ? WHERE name = 'deployments'").run(lastNumber);
  database.prepare("INSERT INTO probes (id, at_ms) VALUES (1, ?)").run(timeMs);
  if (version > 1) {
    database
      .prepare("INSERT INTO secret_uses VALUES (?, ?, ?, ?, ?)")
      .run("a1b2", timeMs, timeMs + 1, "github", "72d3162e");
  }
  const rowsOf = (table: string) =>
    database
      .prepare(`SELECT * FROM ${table}`)
      .all()
      .map((row) => ({ ...row }));
  const tables = new Map(tablesOf(version).map((table) => [table, rowsOf(table)]));
  database.close();
  return tables;
}

function insertDeployment(database: DatabaseSync, state: DeploymentState): void {
  const id = idOf(state);
  const isBegun = state !== "queued" && state !== "superseded";
  database
    .prepare(
      `INSERT INTO deployments (id, trigger, ref, before_commit, commit_id, repository, host, delivery_id, state,
         queue_order, attempts, superseded_by, exit_code, problem_code, problem_detail, created_at_ms, started_at_ms,
         finished_at_ms)
       VALUES (?, 'push', 'refs/heads/main', NULL, ?, 'octo/app', 'github', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)`,
    )
    .run(
      id,
      commitOf(state),
      `delivery-${id}`,
      state,
      id,
      isBegun ? 1 : 0,
      state === "superseded" ? idOf("queued") : null,
      state === "failed" ? 3 : null,
      state === "failed" ? "script_failed" : null,
      state === "failed" ? "deploy.sh ended with exit code 3." : null,
      timeMs + id,
      isBegun ? timeMs + id + 1 : null,
    );
  database
    .prepare("INSERT INTO deliveries VALUES (?, ?, 'refs/heads/main', ?, NULL, ?)")
    .run(digestOf(state), id, commitOf(state), timeMs + id);
  if (!isBegun) return;
  database.prepare("INSERT INTO steps VALUES (?, 1, 1, 'Pull', ?)").run(id, timeMs + id + 2);
}

function digestOf(state: DeploymentState): string {
  return `digest of ${state}`;
}
