import assert from "node:assert/strict";
import { test } from "node:test";
import { knowSecret, noteSecretUse, readSecretUse } from "../../src/deployments/store.ts";
import { temporaryStore } from "../harness/store.ts";

test("the last use of each secret is known, with its delivery and since when it is known", (t) => {
  const store = temporaryStore(t);
  store.transaction(() => {
    knowSecret(store, "aaaa");
    noteSecretUse(store, "bbbb", { host: "gitea", deliveryId: "1" });
    noteSecretUse(store, "bbbb", { host: "github", deliveryId: null });
    store.run("UPDATE secret_uses SET known_since_ms = 7");
    knowSecret(store, "bbbb");
  });
  assert.deepEqual(
    { ...readSecretUse(store, "aaaa") },
    { knownSinceMs: 7, lastUsedAtMs: null, host: null, deliveryId: null },
  );
  const { lastUsedAtMs, ...used } = readSecretUse(store, "bbbb");
  assert.deepEqual(used, { knownSinceMs: 7, host: "github", deliveryId: null });
  assert((lastUsedAtMs ?? 0) > 0);
});
