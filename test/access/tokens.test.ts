import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { findAnswer, keepAnswer } from "../../src/access/repeats.ts";
import { accessIn } from "../../src/access/schema.ts";
import { createToken, listTokens, revokeToken } from "../../src/access/tokens.ts";
import { findVisitor } from "../../src/access/visitor.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const nowMs = Date.UTC(2026, 0, 1);
const dayMs = 24 * 3_600_000;

test("a token is listed without its secret, and ends when it is revoked", (t) => {
  const { store } = openTemporary(t);
  const { id, secret } = createToken(store, { name: "ci", scope: "deploy" }, nowMs);
  assert.equal(listTokens(store)[0]?.lastUsedAtMs, null);
  const visitor = { id, name: "ci", kind: "token", role: "operator" } as const;
  assert.deepEqual(findVisitor(store, secret, nowMs + 1), visitor);
  const listed = listTokens(store);
  assert.equal(listed[0]?.lastUsedAtMs, nowMs + 1);
  assert.ok(!JSON.stringify(listed).includes(secret));
  assert.equal(revokeToken(store, id), true);
  assert.equal(revokeToken(store, id), false);
  assert.equal(findVisitor(store, secret, nowMs), null);
});

test("what Hotpush did not make is no token", (t) => {
  const { store } = openTemporary(t);
  const { secret } = createToken(store, { name: "ci", scope: "read" }, nowMs);
  for (const guess of ["", "hpt_", secret.slice(0, -1), `${secret}A`, secret.toLowerCase(), "' OR 1=1 --"])
    assert.equal(findVisitor(store, guess, nowMs), null, guess);
});

test("an answer is kept for a day, for the visitor who sent the key", (t) => {
  const { store } = openTemporary(t);
  const answer = { request: "POST /deployments {}", status: 202, value: { id: 7 } };
  keepAnswer(store, { visitor: "ci (token 1)", key: "a", ...answer }, nowMs);
  assert.deepEqual(findAnswer(store, "ci (token 1)", "a", nowMs + dayMs - 1), answer);
  assert.equal(findAnswer(store, "ci (token 1)", "a", nowMs + dayMs), null);
  assert.equal(findAnswer(store, "other (token 2)", "a", nowMs), null);
  assert.equal(findAnswer(store, "ci (token 1)", "b", nowMs), null);
});

function openTemporary(t: TestContext) {
  const { store, close } = accessIn(temporaryDirectory(t), pino({ level: "silent" }));
  t.after(close);
  return { store: store() };
}
