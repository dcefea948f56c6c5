import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { pino } from "pino";
import { pruneHistory } from "../../src/deployments/history.ts";
import { recordPush } from "../../src/deployments/record.ts";
import {
  claimNext,
  findDeployment,
  IllegalTransition,
  knowSecret,
  listTotals,
  noteSecretUse,
  noteStep,
  readSecretUse,
  transition,
} from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { isProblem } from "../harness/problems.ts";
import { countOf, openDefault, pushOf, record, temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

// The file

test("a database made by a newer Hotpush is refused and left as it is", (t) => {
  const directory = temporaryDirectory(t);
  openDefault(directory).close();
  const database = new DatabaseSync(join(directory, "hotpush.db"));
  database.exec("PRAGMA user_version = 2");
  database.close();
  assert.throws(() => openDefault(directory), isProblem("state_unusable"));
  assert.ok(!readdirSync(directory).some((name) => name.includes("corrupt")));
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
  const openers = Array.from({ length: 4 }, () => fork(new URL("opener.ts", import.meta.url)));
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

// States

test("the database itself refuses a second running deployment", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ ref: "refs/heads/main" }));
  record(store, pushOf({ ref: "refs/heads/master" }));
  assert.throws(() => store.run("UPDATE deployments SET state = 'running'"), /UNIQUE constraint failed/);
});

test("a deployment changes its state only from the one that it is in, as the table says", (t) => {
  const store = temporaryStore(t);
  const { id } = record(store, pushOf()).deployment;
  store.run("UPDATE deployments SET state = 'succeeded'");
  for (const state of ["running", "succeeded"] as const)
    assert.throws(() => transition(store, { id, state }, "failed"), IllegalTransition);
  assert.equal(findDeployment(store, id)?.state, "succeeded");
});

test("the last use of each secret is known, with its delivery and since when it is known", (t) => {
  const store = temporaryStore(t);
  store.transaction(() => {
    knowSecret(store, "aaaa");
    noteSecretUse(store, "bbbb", { host: "gitea", deliveryId: "1" });
    noteSecretUse(store, "bbbb", { host: "github", deliveryId: null });
    store.run("UPDATE secret_uses SET known_since_ms = 7");
    knowSecret(store, "bbbb");
  });
  const unused = { knownSinceMs: 7, lastUsedAtMs: null, host: null, deliveryId: null };
  assert.deepEqual({ ...readSecretUse(store, "aaaa") }, unused);
  const { lastUsedAtMs, ...used } = readSecretUse(store, "bbbb");
  assert.deepEqual(used, { knownSinceMs: 7, host: "github", deliveryId: null });
  assert((lastUsedAtMs ?? 0) > 0);
});

// Totals

test("a run counts once with its result, length and requests, also when it is pruned", (t) => {
  const store = temporaryStore(t);
  const none = { answers: 0, serverErrors: 0 };
  const counted = { brokeOff: 0, left: 0, before: none, after: none };
  const requests = [
    { host: "a.example.org", requests: 100, failed: 2, ...counted },
    { host: "b.example.org", requests: 50, failed: 0, ...counted },
  ];
  deploy(store, 12_000, "succeeded", JSON.stringify(requests));
  deploy(store, 700);
  deploy(store, 1_000, "failed");
  store.transaction(() => store.run("DELETE FROM deployments"));
  const totals = listTotals(store).map(({ name, labels, value }) => [`${name}{${labels}}`, value]);
  assert.partialDeepStrictEqual(Object.fromEntries(totals), {
    'cicd_pipeline_run_duration_seconds_count{cicd_pipeline_result="success"}': 2,
    'cicd_pipeline_run_duration_seconds_bucket{cicd_pipeline_result="success",le="1"}': 1,
    'cicd_pipeline_run_duration_seconds_bucket{cicd_pipeline_result="success",le="20"}': 2,
    'cicd_pipeline_run_duration_seconds_bucket{cicd_pipeline_result="success",le="+Inf"}': 2,
    'cicd_pipeline_run_duration_seconds_count{cicd_pipeline_result="failure"}': 1,
    'cicd_pipeline_run_errors_total{error_type="script_failed"}': 1,
    "hotpush_push_to_live_seconds_count{}": 2,
    "hotpush_rollout_requests_total{}": 150,
    "hotpush_rollout_failed_requests_total{}": 2,
  });
});

// Retention

test("a long history is pruned a part at a time, and its ids are not reused", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 2_200);
  const counts = [1, 2, 3, 4].map(() => {
    prune(store);
    return countOf(store, "deployments");
  });
  assert.deepEqual(counts, [1_700, 1_200, 1_000, 1_000]);
  store.transaction(() => store.run("DELETE FROM deployments"));
  assert.equal(record(store, pushOf()).deployment.id, 2_201);
});

test("the newest 50,000 deliveries are kept", (t) => {
  const store = temporaryStore(t);
  const sql = `WITH RECURSIVE each(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM each WHERE n < 50599)
    INSERT INTO deliveries (project, digest, deployment_id, ref, commit_id, received_at_ms)
    SELECT $project, 'delivery ' || n, 1, 'main', 'a', n FROM each`;
  store.transaction(() => store.run(sql));
  for (let count = 0; count < 3; count += 1) prune(store);
  assert.equal(countOf(store, "deliveries"), 50_000);
  assert.equal(store.get("SELECT 1 FROM deliveries WHERE digest = 'delivery 599'"), undefined);
});

test("a flood of pushes makes nobody forget what is live and what was deployed last", (t) => {
  const store = temporaryStore(t);
  addDeployments(store, 1_010);
  store.transaction(() => {
    store.run("UPDATE deployments SET state = 'succeeded' WHERE id <= 3");
    store.run("UPDATE deployments SET trigger = 'rollback' WHERE id = 3");
    // Nor what has not ended.
    for (const [id, state] of ["queued", "running", "interrupted"].entries())
      store.run("UPDATE deployments SET state = ? WHERE id = ?", state, id + 4);
  });
  for (const id of [1, 4]) {
    const deployment = findDeployment(store, id) ?? assert.fail();
    noteStep(store, deployment, "Build", pino({ enabled: false }));
  }
  prune(store);
  const idsIn = (sql: string) => store.all(sql).map(({ id }) => id);
  assert.deepEqual(idsIn("SELECT id FROM deployments ORDER BY id LIMIT 6"), [2, 3, 4, 5, 6, 11]);
  assert.deepEqual(idsIn("SELECT deployment_id AS id FROM steps"), [4]);
});

/** A deployment that has run for `durationMs`. */
function deploy(
  store: Store,
  durationMs: number,
  state: "succeeded" | "failed" = "succeeded",
  requests: string | null = null,
): void {
  store.transaction(() => {
    recordPush(store, pushOf());
    const running = claimNext(store) ?? assert.fail();
    const sql = "UPDATE deployments SET started_at_ms = ?, requests = ? WHERE id = ?";
    store.run(sql, Date.now() - durationMs, requests, running.id);
    const problem = state === "failed" ? ({ code: "script_failed", detail: "" } as const) : null;
    transition(store, running, state, { problem });
  });
}

function prune(store: Store): void {
  store.transaction(() => pruneHistory(store));
}

/** Pushes, each of which the next one supersedes. */
function addDeployments(store: Store, count: number): void {
  store.transaction(() => {
    for (let id = 1; id <= count; id += 1) recordPush(store, pushOf());
    store.run("UPDATE deployments SET state = 'superseded', queue_order = id");
  });
}
