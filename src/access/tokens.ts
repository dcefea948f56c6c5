import type { Store } from "#platform/sqlite";
import { hashOf, makeCredential } from "./credentials.ts";

/** A token may look, or also deploy, cancel, roll back and pause. */
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

/** @returns the secret, which is shown once and kept nowhere */
export function createToken(
  store: Store,
  { name, scope }: Pick<Token, "name" | "scope">,
  nowMs: number,
): { readonly id: number; readonly secret: string } {
  const secret = makeCredential("token");
  const sql = "INSERT INTO tokens (hash, name, scope, created_at_ms) VALUES (?, ?, ?, ?)";
  const { id } = store.transaction(() => store.run(sql, hashOf(secret), name, scope, nowMs));
  return { id, secret };
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
