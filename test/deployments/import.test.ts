import assert from "node:assert/strict";
import { test } from "node:test";
import { listDeployments } from "../../src/deployments/history.ts";
import { importDeployments } from "../../src/deployments/import.ts";
import { pauseQueue } from "../../src/deployments/pauses.ts";
import { deploymentsSchema, openDeployments, openLeftDeployments } from "../../src/deployments/schema.ts";
import { claimNext } from "../../src/deployments/states.ts";
import type { Store } from "../../src/platform/sqlite/store.ts";
import { digestOf, idOf, states, writeOldDatabase } from "../harness/old-database.ts";
import { commitOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

const newest = deploymentsSchema.migrations.length;

for (let version = 1; version <= newest; version += 1) {
  test(`imports a database of version ${version} with its numbers, states and deliveries`, (t) => {
    const shop = temporaryStore(t).of("shop");
    const { added } = importFrom(t, shop, oldState(t, version));
    assert.deepEqual([...added.keys()].sort(), [...added.values()].sort());
    const found = listDeployments(shop, { limit: 100 });
    assert.deepEqual(
      found.map(({ id, commit }) => [id, commit]),
      states.map((state) => [idOf(state), commitOf(state)]).reverse(),
    );
    const now = Object.fromEntries(found.map(({ id, state }) => [id, state]));
    const expected = states.map((state) => [idOf(state), afterStop(state)]);
    assert.deepEqual(now, Object.fromEntries(expected));
    assert.equal(record(shop, pushOf({ digest: digestOf("succeeded") })).kind, "duplicate");
    assert.equal(Number(shop.get("SELECT count(*) AS n FROM steps")?.n) > 0, true);
  });
}

function afterStop(state: string): string {
  return state === "running" || state === "interrupted" ? "queued" : state;
}

test("gives new numbers in the same order if another project has one of them", (t) => {
  const store = temporaryStore(t);
  record(store.of("blog"), pushOf());
  const shop = store.of("shop");
  const { added } = importFrom(t, shop, oldState(t, newest));
  assert.deepEqual([...added.values()].sort(order), states.map((state) => idOf(state) + 1).sort(order));
  const superseded = shop.get(
    "SELECT superseded_by AS by FROM deployments WHERE id = ?",
    idOf("superseded") + 1,
  );
  assert.equal(superseded?.by, idOf("queued") + 1);
  const delivery = shop.get(
    "SELECT deployment_id AS id FROM deliveries WHERE digest = ?",
    digestOf("failed"),
  );
  assert.equal(delivery?.id, idOf("failed") + 1);
  assert.equal(Number(shop.get("SELECT count(*) AS n FROM deployments WHERE project = 'blog'")?.n), 1);
});

test("a second import adds only what is new", (t) => {
  const store = temporaryStore(t);
  record(store.of("blog"), pushOf());
  const shop = store.of("shop");
  const directory = oldState(t, newest);
  importFrom(t, shop, directory);
  const before = snapshot(store);
  assert.deepEqual(importFrom(t, shop, directory), { added: new Map(), known: states.length });
  assert.deepEqual(snapshot(store), before);
  const old = openDeployments(directory);
  record(old.of("default"), pushOf());
  old.close();
  const { added, known } = importFrom(t, shop, directory);
  assert.deepEqual([added.size, known], [1, states.length]);
  assert.equal(listDeployments(shop, { limit: 1 })[0]?.id, [...added.values()][0]);
});

test("what waited is deployed here, and what ended stays as it ended", (t) => {
  const shop = temporaryStore(t).of("shop");
  const directory = temporaryDirectory(t);
  const old = openDeployments(directory);
  record(old.of("default"), pushOf({ commit: commitOf("first") }));
  run(old.of("default"), "succeeded");
  record(old.of("default"), pushOf({ commit: commitOf("second") }));
  old.close();
  importFrom(t, shop, directory);
  const claimed = shop.transaction(() => claimNext(shop));
  assert.equal(claimed?.commit, commitOf("second"));
  assert.equal(claimed?.attempts, 1);
});

test("a script that was interrupted by the stop runs again, and not more than three times", (t) => {
  for (const [attempts, state] of [
    [1, "queued"],
    [3, "failed"],
  ] as const) {
    const shop = temporaryStore(t).of("shop");
    const directory = temporaryDirectory(t);
    const old = openDeployments(directory);
    const view = old.of("default");
    record(view, pushOf());
    view.transaction(() => claimNext(view));
    view.transaction(() => view.run("UPDATE deployments SET attempts = ?", attempts));
    old.close();
    importFrom(t, shop, directory);
    assert.equal(listDeployments(shop, { limit: 1 })[0]?.state, state);
  }
});

test("a paused queue stays paused", (t) => {
  const shop = temporaryStore(t).of("shop");
  const directory = temporaryDirectory(t);
  const old = openDeployments(directory);
  const view = old.of("default");
  record(view, pushOf());
  view.transaction(() => pauseQueue(view, { reason: "a freeze", pausedBy: "ada" }));
  old.close();
  importFrom(t, shop, directory);
  assert.equal(
    shop.transaction(() => claimNext(shop)),
    null,
  );
});

test("a number whose deployment was pruned there is given to no other project", (t) => {
  const store = temporaryStore(t);
  record(store.of("blog"), pushOf());
  const directory = oldState(t, newest);
  const old = openDeployments(directory);
  const [pruned, digest] = [idOf("queued"), digestOf("queued")];
  old.transaction(() => old.run("DELETE FROM deployments WHERE id = ?", pruned));
  old.close();
  const shop = store.of("shop");
  importFrom(t, shop, directory);
  const delivery = shop.get("SELECT deployment_id AS id FROM deliveries WHERE digest = ?", digest);
  assert.equal(store.get("SELECT 1 FROM deployments WHERE id = ?", Number(delivery?.id)), undefined);
});

function oldState(scope: Scope, version: number): string {
  const directory = temporaryDirectory(scope);
  writeOldDatabase(directory, Math.min(version, newest - 1));
  if (version === newest) openDeployments(directory).close();
  return directory;
}

function importFrom(scope: Scope, store: Store, directory: string) {
  const source = openLeftDeployments(directory);
  scope.after(() => source.close());
  return store.transaction(() => importDeployments(store, source.of("default")));
}

function snapshot(store: Store) {
  const tables = ["deployments", "deliveries", "steps", "secret_uses", "pauses"];
  return tables.map((table) => store.all(`SELECT * FROM ${table}`).map((row) => ({ ...row })));
}

function order(one: number, other: number): number {
  return one - other;
}
