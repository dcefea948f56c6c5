import type { Store } from "#platform/sqlite";
import { credentialKind, hashOf } from "./credentials.ts";

/** A viewer looks; an operator also starts, ends and holds deployments. */
export type Role = "viewer" | "operator";

/** Somebody, or a program, that calls over the page's socket. */
export interface Visitor {
  /** As the operator named it when the link or the token was made. */
  readonly name: string;
  readonly kind: "session" | "token";
  /** Of the session or the token. */
  readonly id: number;
  readonly role: Role;
}

const dayMs = 24 * 3_600_000;
/** People sign in again a month after their last visit. */
export const sessionLastsMs = 30 * dayMs;
/** A visit is written at most this often: a page that is open asks all the time. */
const noteEveryMs = 60_000;

/** @returns whose credential it is; null if it is none, has expired or was revoked */
export function findVisitor(store: Store, credential: string, nowMs: number): Visitor | null {
  const kind = credentialKind(credential);
  if (kind === "session") return findSession(store, hashOf(credential), nowMs);
  return kind === "token" ? findToken(store, hashOf(credential), nowMs) : null;
}

function findSession(store: Store, hash: string, nowMs: number): Visitor | null {
  const row = store.get("SELECT id, name, role, last_seen_at_ms FROM sessions WHERE hash = ?", hash);
  if (row === undefined || nowMs - Number(row.last_seen_at_ms) > sessionLastsMs) return null;
  if (nowMs - Number(row.last_seen_at_ms) > noteEveryMs) {
    noteVisit(store, "UPDATE sessions SET last_seen_at_ms = ? WHERE hash = ?", nowMs, hash);
  }
  const { id, name, role } = row;
  return { id: Number(id), name: String(name), kind: "session", role: roleOf(role === "operator") };
}

function findToken(store: Store, hash: string, nowMs: number): Visitor | null {
  const row = store.get("SELECT id, name, scope, last_used_at_ms FROM tokens WHERE hash = ?", hash);
  if (row === undefined) return null;
  if (nowMs - Number(row.last_used_at_ms ?? 0) > noteEveryMs) {
    noteVisit(store, "UPDATE tokens SET last_used_at_ms = ? WHERE hash = ?", nowMs, hash);
  }
  const { id, name, scope } = row;
  return { id: Number(id), name: String(name), kind: "token", role: roleOf(scope === "deploy") };
}

function roleOf(isOperator: boolean): Role {
  return isOperator ? "operator" : "viewer";
}

/** A full disk, which the health check reports, keeps nobody from looking. */
function noteVisit(store: Store, sql: string, nowMs: number, hash: string): void {
  try {
    store.transaction(() => store.run(sql, nowMs, hash));
  } catch {
    // The next request tries again.
  }
}
