import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { accessIn } from "../../src/access/schema.ts";
import * as visitors from "../../src/access/visitors.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const { createToken, findVisitor, linkLastsMs, makeLink, openLink, sessionLastsMs } = visitors;
const nowMs = Date.UTC(2026, 0, 1);
const browser = { address: "192.0.2.1", agent: "Firefox" };

test("a link opens one session, within two minutes", (t) => {
  const { store } = openTemporary(t);
  const link = makeLink(store, { name: "Ann", role: "viewer" }, nowMs);
  const session = openLink(store, link, browser, nowMs + linkLastsMs);
  assert.equal(findVisitor(store, session ?? "", nowMs)?.name, "Ann");
  assert.equal(openLink(store, link, browser, nowMs), null, "a second time");
  const late = makeLink(store, { name: "Ben", role: "viewer" }, nowMs);
  assert.equal(openLink(store, late, browser, nowMs + linkLastsMs + 1), null, "too late");
  assert.equal(openLink(store, late, browser, nowMs), null, "an expired link was used up");
});

test("what Hotpush did not make, or made as another kind, opens nothing", (t) => {
  const { store } = openTemporary(t);
  const link = makeLink(store, { name: "Ann", role: "operator" }, nowMs);
  assert.equal(findVisitor(store, link, nowMs), null);
  const session = openLink(store, link, browser, nowMs) ?? "";
  const { secret } = createToken(store, { name: "ci", scope: "read" }, nowMs);
  const others = [session.replace("hps_", "hpt_"), secret.replace("hpt_", "hps_"), secret.toLowerCase()];
  const unknown = ["", "hpl_", `hpl_${"A".repeat(43)}`, `hps_${"A".repeat(43)}`, "' OR 1=1 --"];
  for (const guess of [...others, ...unknown, secret.slice(0, -1), `${secret}A`]) {
    assert.equal(openLink(store, guess, browser, nowMs), null, guess);
    assert.equal(findVisitor(store, guess, nowMs), null, guess);
  }
});

test("a session ends a month after the last visit, or when it is revoked", (t) => {
  const { store } = openTemporary(t);
  const signIn = () =>
    openLink(store, makeLink(store, { name: "Ann", role: "viewer" }, nowMs), browser, nowMs) ?? "";
  const visited = signIn();
  const forgotten = signIn();
  const revoked = signIn();
  assert.ok(findVisitor(store, visited, nowMs + sessionLastsMs - 1));
  assert.ok(findVisitor(store, visited, nowMs + 2 * sessionLastsMs - 2));
  assert.equal(findVisitor(store, forgotten, nowMs + sessionLastsMs + 1), null);
  const id = findVisitor(store, revoked, nowMs)?.id ?? 0;
  assert.deepEqual([visitors.revokeSession(store, id), visitors.revokeSession(store, id)], [true, false]);
  assert.equal(findVisitor(store, revoked, nowMs), null);
  assert.ok(!visitors.listSessions(store, nowMs).some((session) => session.id === id));
});

test("a token is listed without its secret, and ends when it is revoked", (t) => {
  const { store } = openTemporary(t);
  const { id, secret } = createToken(store, { name: "ci", scope: "deploy" }, nowMs);
  assert.equal(visitors.listTokens(store)[0]?.lastUsedAtMs, null);
  const visitor = { id, name: "ci", kind: "token", role: "operator" } as const;
  assert.deepEqual(findVisitor(store, secret, nowMs + 1), visitor);
  const listed = visitors.listTokens(store);
  assert.equal(listed[0]?.lastUsedAtMs, nowMs + 1);
  assert.ok(!JSON.stringify(listed).includes(secret));
  assert.deepEqual([visitors.revokeToken(store, id), visitors.revokeToken(store, id)], [true, false]);
  assert.equal(findVisitor(store, secret, nowMs), null);
});

test("a session has the role of its link, and a token that of its scope", (t) => {
  const { store } = openTemporary(t);
  for (const [role, scope] of [
    ["viewer", "read"],
    ["operator", "deploy"],
  ] as const) {
    const session = openLink(store, makeLink(store, { name: "Ann", role }, nowMs), browser, nowMs);
    const { secret } = createToken(store, { name: "ci", scope }, nowMs);
    for (const credential of [session ?? "", secret])
      assert.equal(findVisitor(store, credential, nowMs)?.role, role);
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
