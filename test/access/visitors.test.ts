import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  findVisitor,
  linkLastsMs,
  listVisitors,
  makeCredential,
  openLink,
  revokeVisitor,
  sessionLastsMs,
  type Visitor,
} from "../../src/access/visitors.ts";
import { openDeployments } from "../../src/deployments/store.ts";
import type { Store } from "../../src/platform/sqlite.ts";
import { temporaryStore } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const nowMs = Date.UTC(2026, 0, 1);
const browser = { address: "192.0.2.1", agent: "Firefox" };

test("a link opens one session, within two minutes", (t) => {
  const store = temporaryStore(t);
  const link = make(store, "link", "viewer", "Ann").secret;
  const session = openLink(store, link, browser, nowMs + linkLastsMs);
  assert.equal(findVisitor(store, session ?? "", nowMs)?.name, "Ann");
  assert.equal(openLink(store, link, browser, nowMs), null, "a second time");
  const late = make(store, "link", "viewer", "Ben").secret;
  assert.equal(openLink(store, late, browser, nowMs + linkLastsMs + 1), null, "too late");
  assert.equal(openLink(store, late, browser, nowMs), null, "an expired link was used up");
});

test("a session ends a month after the last visit, or when it is revoked", (t) => {
  const store = temporaryStore(t);
  const signIn = () => openLink(store, make(store, "link", "viewer", "Ann").secret, browser, nowMs) ?? "";
  const visited = signIn();
  const forgotten = signIn();
  const revoked = signIn();
  assert.ok(findVisitor(store, visited, nowMs + sessionLastsMs - 1));
  assert.ok(findVisitor(store, visited, nowMs + 2 * sessionLastsMs - 2));
  assert.equal(findVisitor(store, forgotten, nowMs + sessionLastsMs + 1), null);
  const id = findVisitor(store, revoked, nowMs)?.id ?? 0;
  assert.deepEqual([revokeVisitor(store, id)?.kind, revokeVisitor(store, id)], ["session", null]);
  assert.equal(findVisitor(store, revoked, nowMs), null);
  assert.ok(!listVisitors(store, nowMs).some((session) => session.id === id));
});

test("the files on disk have no credential that opens anything", (t) => {
  const directory = temporaryDirectory(t);
  const store = openDeployments(directory);
  t.after(store.close);
  const link = make(store, "link", "operator", "Ann").secret;
  const session = openLink(store, make(store, "link", "viewer", "Ben").secret, browser, nowMs);
  const { secret } = make(store, "token", "operator", "ci");
  const bytes = ["", "-wal"].map((end) => readFileSync(join(directory, `hotpush.db${end}`), "latin1")).join();
  for (const credential of [link, session ?? "", secret]) assert.ok(!bytes.includes(credential.slice(4)));
});

function make(store: Store, kind: "link" | "token", role: Visitor["role"], name = "Ann") {
  return makeCredential(store, kind, { name, role }, nowMs);
}
