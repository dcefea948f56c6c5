import type { Row, Store } from "#platform/sqlite";
import { credentialKind, hashOf, makeCredential } from "./credentials.ts";
import { type Role, sessionLastsMs } from "./visitor.ts";

/** Long enough to click, too short to be found in a chat later. */
export const linkLastsMs = 120_000;

/** A link's secret, which opens one session within two minutes. */
export function makeLink(store: Store, { name, role }: { name: string; role: Role }, nowMs: number): string {
  const secret = makeCredential("link");
  store.transaction(() => {
    store.run("DELETE FROM links WHERE expires_at_ms < ?", nowMs);
    const sql = "INSERT INTO links (hash, name, role, expires_at_ms) VALUES (?, ?, ?, ?)";
    store.run(sql, hashOf(secret), name, role, nowMs + linkLastsMs);
  });
  return secret;
}

/** Where a browser is, as the page reports it; nothing proves it. */
export interface Browser {
  readonly address: string | null;
  readonly agent: string | null;
}

/**
 * Uses up a link. The session is always a new one: a credential that somebody planted in a browser is never taken over.
 *
 * @returns the secret of the session; null if the link was used, has expired or is none
 */
export function openLink(
  store: Store,
  secret: string,
  { address, agent }: Browser,
  nowMs: number,
): string | null {
  if (credentialKind(secret) !== "link") return null;
  const session = makeCredential("session");
  return store.transaction(() => {
    const link = store.get("SELECT name, role, expires_at_ms FROM links WHERE hash = ?", hashOf(secret));
    store.run("DELETE FROM links WHERE hash = ?", hashOf(secret));
    if (link === undefined || Number(link.expires_at_ms) < nowMs) return null;
    store.run("DELETE FROM sessions WHERE last_seen_at_ms < ?", nowMs - sessionLastsMs);
    const sql = `INSERT INTO sessions (hash, name, role, created_at_ms, last_seen_at_ms, address, agent)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    const { name, role } = link;
    store.run(sql, hashOf(session), String(name), String(role), nowMs, nowMs, address, agent);
    return session;
  });
}

export interface Session extends Browser {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
}

/** The sessions that have not expired, the newest first. */
export function listSessions(store: Store, nowMs: number): readonly Session[] {
  const sql = `SELECT id, name, role, created_at_ms, last_seen_at_ms, address, agent FROM sessions
    WHERE last_seen_at_ms >= ? ORDER BY id DESC`;
  return store.all(sql, nowMs - sessionLastsMs).map(toSession);
}

function toSession(row: Row): Session {
  return {
    id: Number(row.id),
    name: String(row.name),
    role: row.role as Role,
    createdAtMs: Number(row.created_at_ms),
    lastSeenAtMs: Number(row.last_seen_at_ms),
    address: row.address as string | null,
    agent: row.agent as string | null,
  };
}

/** Ends a session at once. @returns whether there was one */
export function revokeSession(store: Store, id: number): boolean {
  return store.transaction(() => store.run("DELETE FROM sessions WHERE id = ?", id).changes > 0);
}
