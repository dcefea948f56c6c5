import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { nextReport, removeReport, setSubscribers } from "../../src/deployments/outbox.ts";
import { cancelQueued } from "../../src/deployments/record.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { pushOf, record, run, temporaryStore } from "../harness/store.ts";

test("the ending is in the outbox exactly if the transaction that records it is kept", (t) => {
  const store = subscribed(t);
  record(store, pushOf());
  assert.throws(() =>
    store.transaction(() => {
      run({ ...store, transaction: (work) => work() }, "failed");
      throw new Error("the disk is full");
    }),
  );
  assert.deepEqual(takeAll(store), []);
  run(store, "failed");
  assert.deepEqual(takeAll(store), ["1 ended failed"]);
});

test("a push that never started is not reported if it is superseded or cancelled", (t) => {
  const store = subscribed(t);
  record(store, pushOf());
  record(store, pushOf());
  store.transaction(() => cancelQueued(store, 2, null));
  assert.deepEqual(takeAll(store), []);
});

test("a success after a failure says so, also if it is the same deployment", (t) => {
  const store = subscribed(t);
  const push = pushOf();
  record(store, push);
  run(store, "failed");
  record(store, push);
  run(store, "cancelled");
  record(store, push);
  run(store, "succeeded");
  record(store, pushOf());
  run(store, "succeeded");
  assert.deepEqual(takeAll(store), [
    "1 ended failed",
    "1 ended cancelled after a failure",
    "1 ended succeeded after a failure",
    "2 ended succeeded",
  ]);
});

test("who is named after a failure is told of the success that ends it", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf());
  run(store, "failed");
  store.transaction(() => setSubscribers(store, ["one"]));
  record(store, pushOf());
  run(store, "succeeded");
  assert.deepEqual(takeAll(store), ["2 ended succeeded after a failure"]);
});

function subscribed(t: TestContext): Store {
  const store = temporaryStore(t);
  store.transaction(() => setSubscribers(store, ["one"]));
  return store;
}

/** Takes what waits for the subscriber out of the outbox, as text. */
function takeAll(store: Store): readonly string[] {
  const texts: string[] = [];
  for (;;) {
    const waiting = nextReport(store, { project: "default", subscriber: "one" });
    if (waiting === null) return texts;
    const { event, deployment, isAfterFailure } = waiting.report;
    texts.push(`${deployment.id} ${event} ${deployment.state}${isAfterFailure ? " after a failure" : ""}`);
    removeReport(store, waiting.id);
  }
}
