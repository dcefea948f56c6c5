import assert from "node:assert/strict";
import { test } from "node:test";
import { recordRequest } from "../../src/deployments/record.ts";
import { commitOf, countOf, pushOf, record, run, temporaryStore } from "../harness/store.ts";

const [a, b, c] = [commitOf("A"), commitOf("B"), commitOf("C")];

test("a push that two webhooks report is one deployment, and no question to the remote", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: a, commit: b }));
  const again = record(store, pushOf({ before: a, commit: b }));
  assert.deepEqual([again.kind, again.deployment.id, again.doubt], ["duplicate", 1, null]);
  run(store, "succeeded");
  assert.equal(record(store, pushOf({ before: a, commit: b })).kind, "duplicate");
  assert.equal(countOf(store, "deployments"), 1);
});

test("an old step that a second webhook reports late is a duplicate to ask about", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: a, commit: b }));
  run(store, "succeeded");
  record(store, pushOf({ before: b, commit: c }));
  run(store, "succeeded");
  const late = record(store, pushOf({ before: a, commit: b }));
  assert.deepEqual([late.kind, late.deployment.id], ["duplicate", 1]);
  assert.deepEqual(late.doubt, {
    ref: late.deployment.ref,
    before: a,
    commit: b,
    isFirst: true,
    isLikely: false,
  });
  assert.match(late.kind === "duplicate" ? late.detail : "", /The remote is asked/);
});

test("a step that can have been made again is likely if the remote does not answer", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: a, commit: b }));
  record(store, pushOf({ before: b, commit: a }));
  const again = record(store, pushOf({ before: a, commit: b }));
  assert.deepEqual([again.kind, again.doubt?.isLikely], ["duplicate", true]);
});

test("a copied old delivery is no first one, and a copy of the newest raises no doubt", (t) => {
  const store = temporaryStore(t);
  const [old, newest] = [pushOf({ before: null, commit: a }), pushOf({ before: null, commit: b })];
  for (const push of [old, newest]) {
    record(store, push);
    run(store, "succeeded");
  }
  assert.equal(record(store, newest).doubt, null);
  const { kind, doubt } = record(store, old);
  assert.deepEqual([kind, doubt?.commit, doubt?.isFirst, doubt?.isLikely], ["duplicate", a, false, false]);
});

test("a failed push that another webhook reports is tried again", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: a, commit: b }));
  run(store, "failed");
  const again = record(store, pushOf({ before: a, commit: b }));
  assert.deepEqual([again.kind, again.deployment.id], ["accepted", 1]);
  assert.equal(run(store, "succeeded").id, 1);
});

test("a push to a new commit raises no doubt, a return to an old one does", (t) => {
  const store = temporaryStore(t);
  assert.equal(record(store, pushOf({ before: a, commit: b })).doubt, null);
  assert.equal(record(store, pushOf({ before: b, commit: c })).doubt, null);
  const back = record(store, pushOf({ before: c, commit: b }));
  assert.deepEqual([back.kind, back.doubt?.commit], ["accepted", b]);
});

test("the test button of a host, a step from a commit to itself, deploys each time", (t) => {
  const store = temporaryStore(t);
  for (const id of [1, 2, 3]) {
    const pressed = record(store, pushOf({ before: a, commit: a }));
    assert.deepEqual([pressed.kind, pressed.deployment.id, pressed.doubt], ["accepted", id, null]);
    run(store, "succeeded");
  }
});

test("a step that is reported late does not undo a roll back", (t) => {
  const store = temporaryStore(t);
  record(store, pushOf({ before: a, commit: b }));
  run(store, "succeeded");
  store.transaction(() => recordRequest(store, { trigger: "rollback", ref: "refs/heads/main", commit: a }));
  run(store, "succeeded");
  assert.equal(record(store, pushOf({ before: a, commit: b })).kind, "duplicate");
  assert.equal(countOf(store, "deployments"), 2);
});
