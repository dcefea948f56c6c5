import type { Store } from "../platform/sqlite/store.ts";
import { credentialKind, hashOf } from "./credentials.ts";

/** A request looks; or it starts, ends or holds deployments. */
export type Right = "read" | "deploy";

/** Somebody, or a program, that calls over the page's socket. */
export interface Visitor {
  /** As the operator named it when the link or the token was made. */
  readonly name: string;
  readonly kind: "session" | "token";
  /** Of the session or the token. */
  readonly id: number;
  readonly rights: readonly Right[];
}

/** By the role of a session, or the scope of a token. */
const rights: Readonly<Record<string, readonly Right[]>> = {
  viewer: ["read"],
  operator: ["read", "deploy"],
  read: ["read"],
  deploy: ["read", "deploy"],
};

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
  return { id: Number(id), name: String(name), kind: "session", rights: rights[String(role)] ?? [] };
}

function findToken(store: Store, hash: string, nowMs: number): Visitor | null {
  const row = store.get("SELECT id, name, scope, last_used_at_ms FROM tokens WHERE hash = ?", hash);
  if (row === undefined) return null;
  if (nowMs - Number(row.last_used_at_ms ?? 0) > noteEveryMs) {
    noteVisit(store, "UPDATE tokens SET last_used_at_ms = ? WHERE hash = ?", nowMs, hash);
  }
  const { id, name, scope } = row;
  return { id: Number(id), name: String(name), kind: "token", rights: rights[String(scope)] ?? [] };
}

/** A full disk, which the health check reports, keeps nobody from looking. */
function noteVisit(store: Store, sql: string, nowMs: number, hash: string): void {
  try {
    store.transaction(() => store.run(sql, nowMs, hash));
  } catch {
    // The next request tries again.
  }
}
