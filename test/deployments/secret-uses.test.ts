import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { createSecretUses } from "../../src/deployments/secret-uses.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { temporaryStore } from "../harness/store.ts";

const log = pino({ enabled: false });

test("a use is known at once, and after a restart, with the delivery", (t) => {
  const store = temporaryStore(t);
  const first = open(store, "aaaa", "bbbb");
  first.note("previous", "github", "72d3162e");
  assert.equal(first.read().previous?.deliveryId, "72d3162e");
  assert.equal(first.read().current.lastUsedAtMs, null);
  first.close();
  const { previous } = open(store, "aaaa", "bbbb").read();
  assert.deepEqual([previous?.host, previous?.deliveryId], ["github", "72d3162e"]);
});

test("what was known of a secret stays with it when it becomes the previous one", (t) => {
  const store = temporaryStore(t);
  const before = open(store, "aaaa", null);
  before.begin();
  before.note("current", "gitea", "1");
  before.close();
  const after = open(store, "cccc", "aaaa");
  after.begin();
  const { current, previous } = after.read();
  assert.deepEqual([previous?.host, previous?.deliveryId, current.lastUsedAtMs], ["gitea", "1", null]);
  assert.ok(current.knownSinceMs >= (previous?.knownSinceMs ?? 0));
});

test("a flood of deliveries writes once a minute", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
  const { store, count } = counting(t);
  const uses = open(store, "aaaa", "bbbb");
  for (let index = 0; index < 1_000; index += 1) uses.note("previous", "github", String(index));
  t.mock.timers.tick(1);
  for (let index = 0; index < 1_000; index += 1) uses.note("current", "github", String(index));
  t.mock.timers.tick(30_000);
  assert.equal(count(), 1);
  t.mock.timers.tick(31_000);
  assert.equal(count(), 2);
  assert.equal(store.get("SELECT count(*) AS n FROM secret_uses WHERE delivery_id = '999'")?.n, 2);
});

test("a disk that fails costs the evidence, not the delivery", (t) => {
  const store = temporaryStore(t);
  const failing: Store = {
    ...store,
    transaction() {
      throw new Error("no space");
    },
  };
  const uses = open(failing, "aaaa", "bbbb");
  uses.begin();
  uses.note("previous", "github", "1");
  uses.close();
  assert.equal(uses.read().previous?.deliveryId, "1");
});

function open(store: Store, current: string, previous: string | null) {
  return createSecretUses({ store, fingerprints: { current, previous }, log });
}

function counting(t: TestContext) {
  const store = temporaryStore(t);
  let transactions = 0;
  const counted: Store = {
    ...store,
    transaction(work) {
      transactions += 1;
      return store.transaction(work);
    },
  };
  return { store: counted, count: () => transactions };
}
