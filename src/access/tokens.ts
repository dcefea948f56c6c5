import { createHash, randomBytes } from "node:crypto";
import type { Store } from "../platform/sqlite/store.ts";

/** What a token may do: look, or also deploy, cancel and roll back. */
export type Scope = "read" | "deploy";

/** A token of a program, without its secret. */
export interface Token {
  readonly id: number;
  readonly name: string;
  readonly scope: Scope;
  readonly createdAtMs: number;
  /** To the minute; null: never. */
  readonly lastUsedAtMs: number | null;
}

/** The beginning says what it is, for people and for scanners that look for secrets in code. */
const prefix = "hpt_";
/** 256 bits: nobody finds one by trying. */
const secretBytes = 32;

/** @returns the secret, which is shown once and kept nowhere */
export function createToken(
  store: Store,
  { name, scope }: Pick<Token, "name" | "scope">,
  nowMs: number,
): { readonly id: number; readonly secret: string } {
  const secret = `${prefix}${randomBytes(secretBytes).toString("base64url")}`;
  const sql = "INSERT INTO tokens (hash, name, scope, created_at_ms) VALUES (?, ?, ?, ?)";
  const { id } = store.transaction(() => store.run(sql, hashOf(secret), name, scope, nowMs));
  return { id, secret };
}

/** Without a salt: nothing about 256 random bits can be computed beforehand. */
function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

export function listTokens(store: Store): readonly Token[] {
  const rows = store.all("SELECT id, name, scope, created_at_ms, last_used_at_ms FROM tokens ORDER BY id");
  return rows.map((row) => ({
    id: Number(row.id),
    name: String(row.name),
    scope: row.scope as Scope,
    createdAtMs: Number(row.created_at_ms),
    lastUsedAtMs: row.last_used_at_ms as number | null,
  }));
}

/** @returns whether there was one */
export function revokeToken(store: Store, id: number): boolean {
  return store.transaction(() => store.run("DELETE FROM tokens WHERE id = ?", id).changes > 0);
}

/** A program that calls over the page's socket. */
export interface Visitor {
  /** As the operator named its token. */
  readonly name: string;
  /** Of the token. */
  readonly id: number;
  readonly scope: Scope;
}

/** A use is written at most this often: a program may ask all the time. */
const noteEveryMs = 60_000;

/** @returns whose secret it is; null if it is none, or was revoked */
export function findVisitor(store: Store, secret: string, nowMs: number): Visitor | null {
  const hash = hashOf(secret);
  const row = store.get("SELECT id, name, scope, last_used_at_ms FROM tokens WHERE hash = ?", hash);
  if (row === undefined) return null;
  if (nowMs - Number(row.last_used_at_ms ?? 0) > noteEveryMs) {
    store.transaction(() => store.run("UPDATE tokens SET last_used_at_ms = ? WHERE hash = ?", nowMs, hash));
  }
  return { id: Number(row.id), name: String(row.name), scope: row.scope as Scope };
}
