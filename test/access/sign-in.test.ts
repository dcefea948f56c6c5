import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { makeCredential } from "../../src/access/credentials.ts";
import { accessIn } from "../../src/access/schema.ts";
import { linkLastsMs, listSessions, makeLink, openLink, revokeSession } from "../../src/access/sign-in.ts";
import { createToken } from "../../src/access/tokens.ts";
import { findVisitor, sessionLastsMs } from "../../src/access/visitor.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const nowMs = Date.UTC(2026, 0, 1);
const browser = { address: "192.0.2.1", agent: "Firefox" };

test("a link opens one session, within two minutes", (t) => {
  const { store } = openTemporary(t);
  const link = makeLink(store, { name: "Ann", role: "viewer" }, nowMs);
  const session = openLink(store, link, browser, nowMs + linkLastsMs);
  assert.ok(session);
  assert.equal(findVisitor(store, session, nowMs)?.name, "Ann");
  assert.equal(openLink(store, link, browser, nowMs), null, "a second time");
  const late = makeLink(store, { name: "Ben", role: "viewer" }, nowMs);
  assert.equal(openLink(store, late, browser, nowMs + linkLastsMs + 1), null, "too late");
  assert.equal(openLink(store, late, browser, nowMs), null, "an expired link was used up");
});

test("what Hotpush did not make opens nothing", (t) => {
  const { store } = openTemporary(t);
  for (const guess of ["", "hpl_", makeCredential("link"), makeCredential("session"), "' OR 1=1 --"]) {
    assert.equal(openLink(store, guess, browser, nowMs), null);
    assert.equal(findVisitor(store, guess, nowMs), null);
  }
});

test("a link or a session is no credential of the other kind", (t) => {
  const { store } = openTemporary(t);
  const link = makeLink(store, { name: "Ann", role: "operator" }, nowMs);
  assert.equal(findVisitor(store, link, nowMs), null);
  const session = openLink(store, link, browser, nowMs) ?? "";
  assert.equal(openLink(store, session, browser, nowMs), null);
  assert.equal(findVisitor(store, session.replace("hps_", "hpt_"), nowMs), null);
});

test("a session ends a month after the last visit, or when it is revoked", (t) => {
  const { store } = openTemporary(t);
  const signIn = () =>
    openLink(store, makeLink(store, { name: "Ann", role: "viewer" }, nowMs), browser, nowMs) ?? "";
  const [visited, forgotten, revoked] = [signIn(), signIn(), signIn()];
  assert.ok(findVisitor(store, visited, nowMs + sessionLastsMs - 1));
  assert.ok(findVisitor(store, visited, nowMs + 2 * sessionLastsMs - 2));
  assert.equal(findVisitor(store, forgotten, nowMs + sessionLastsMs + 1), null);
  const id = findVisitor(store, revoked, nowMs)?.id ?? 0;
  assert.equal(revokeSession(store, id), true);
  assert.equal(revokeSession(store, id), false);
  assert.equal(findVisitor(store, revoked, nowMs), null);
  assert.equal(
    listSessions(store, nowMs).some((session) => session.id === id),
    false,
  );
});

test("a session has the role of its link, and a token that of its scope", (t) => {
  const { store } = openTemporary(t);
  const roleOf = (credential: string | null) => findVisitor(store, credential ?? "", nowMs)?.role;
  for (const role of ["viewer", "operator"] as const) {
    const link = makeLink(store, { name: "Ann", role }, nowMs);
    assert.deepEqual(roleOf(openLink(store, link, browser, nowMs)), role);
  }
  for (const [scope, role] of [
    ["read", "viewer"],
    ["deploy", "operator"],
  ] as const) {
    assert.deepEqual(roleOf(createToken(store, { name: "ci", scope }, nowMs).secret), role);
  }
});

test("the files on disk have no credential that opens anything", (t) => {
  const { store, directory } = openTemporary(t);
  const link = makeLink(store, { name: "Ann", role: "operator" }, nowMs);
  const session = openLink(store, makeLink(store, { name: "Ben", role: "viewer" }, nowMs), browser, nowMs);
  const { secret } = createToken(store, { name: "ci", scope: "deploy" }, nowMs);
  const bytes = ["", "-wal"].map((end) => readFileSync(join(directory, `access.db${end}`), "latin1")).join();
  for (const credential of [link, session ?? "", secret]) assert.ok(!bytes.includes(credential.slice(4)));
});

function openTemporary(t: TestContext) {
  const directory = temporaryDirectory(t);
  const { store, close } = accessIn(directory, pino({ level: "silent" }));
  t.after(close);
  return { store: store(), directory };
}
