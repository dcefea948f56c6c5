import { createHash, randomBytes } from "node:crypto";
import type { Store } from "#platform/sqlite";

/** A viewer looks; an operator also starts, ends and holds deployments. */
export type Role = "viewer" | "operator";
/** A token may look, or also deploy, cancel, roll back and pause. */
export type Scope = "read" | "deploy";

/** Somebody, or a program, that calls over the page's socket. */
export interface Visitor {
  /** As the operator named it when the link or the token was made. */
  readonly name: string;
  readonly kind: "session" | "token";
  /** Of the session or the token. */
  readonly id: number;
  readonly role: Role;
}

/** Where a browser is, as the page reports it; nothing proves it. */
export interface Browser {
  readonly address: string | null;
  readonly agent: string | null;
}

export interface Session extends Browser {
  readonly id: number;
  readonly name: string;
  readonly role: Role;
  readonly createdAtMs: number;
  readonly lastSeenAtMs: number;
}

/** A token of a program, without its secret. */
export interface Token {
  readonly id: number;
  readonly name: string;
  readonly scope: Scope;
  readonly createdAtMs: number;
  /** To the minute; null: never. */
  readonly lastUsedAtMs: number | null;
}

const dayMs = 24 * 3_600_000;
/** Long enough to click, too short to be found in a chat later. */
export const linkLastsMs = 120_000;
/** People sign in again a month after their last visit. */
export const sessionLastsMs = 30 * dayMs;
/** A visit is written at most this often: a page that is open asks all the time. */
const noteEveryMs = 60_000;

const statements = {
  session: {
    find: "SELECT id, name, role, last_seen_at_ms AS seen FROM sessions WHERE hash = ?",
    note: "UPDATE sessions SET last_seen_at_ms = ? WHERE hash = ?",
  },
  token: {
    find: "SELECT id, name, iif(scope = 'deploy', 'operator', 'viewer') AS role, last_used_at_ms AS seen FROM tokens WHERE hash = ?",
    note: "UPDATE tokens SET last_used_at_ms = ? WHERE hash = ?",
  },
} as const;

/** @returns whose credential it is; null if it is none, has expired or was revoked */
export function findVisitor(store: Store, credential: string, nowMs: number): Visitor | null {
  const kind = kindOf(credential);
  if (kind === null || kind === "link") return null;
  const hash = hashOf(credential);
  const row = store.get(statements[kind].find, hash);
  if (row === undefined) return null;
  const silentMs = nowMs - Number(row.seen ?? 0);
  if (kind === "session" && silentMs > sessionLastsMs) return null;
  if (silentMs > noteEveryMs) noteVisit(store, statements[kind].note, nowMs, hash);
  return { id: Number(row.id), name: String(row.name), kind, role: row.role as Role };
}

/** A full disk, which the health check reports, keeps nobody from looking. */
function noteVisit(store: Store, sql: string, nowMs: number, hash: string): void {
  try {
    store.transaction(() => store.run(sql, nowMs, hash));
  } catch {
    // The next request tries again.
  }
}

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

/**
 * Uses up a link. The session is always a new one: a credential that somebody planted in a browser is never taken over.
 *
 * @returns the secret of the session; null if the link was used, has expired or is none
 */
export function openLink(store: Store, secret: string, browser: Browser, nowMs: number): string | null {
  if (kindOf(secret) !== "link") return null;
  const session = makeCredential("session");
  return store.transaction(() => {
    const link = store.get("SELECT name, role, expires_at_ms FROM links WHERE hash = ?", hashOf(secret));
    store.run("DELETE FROM links WHERE hash = ?", hashOf(secret));
    if (link === undefined || Number(link.expires_at_ms) < nowMs) return null;
    store.run("DELETE FROM sessions WHERE last_seen_at_ms < ?", nowMs - sessionLastsMs);
    const sql = `INSERT INTO sessions (hash, name, role, created_at_ms, last_seen_at_ms, address, agent)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    const { address, agent } = browser;
    store.run(sql, hashOf(session), String(link.name), String(link.role), nowMs, nowMs, address, agent);
    return session;
  });
}

/** The sessions that have not expired, the newest first. */
export function listSessions(store: Store, nowMs: number): readonly Session[] {
  const sql = `SELECT id, name, role, created_at_ms AS createdAtMs, last_seen_at_ms AS lastSeenAtMs, address, agent
    FROM sessions WHERE last_seen_at_ms >= ? ORDER BY id DESC`;
  return store.all(sql, nowMs - sessionLastsMs) as unknown as readonly Session[];
}

/** Ends a session at once. @returns whether there was one */
export function revokeSession(store: Store, id: number): boolean {
  return store.transaction(() => store.run("DELETE FROM sessions WHERE id = ?", id).changes > 0);
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
  const sql = `SELECT id, name, scope, created_at_ms AS createdAtMs, last_used_at_ms AS lastUsedAtMs
    FROM tokens ORDER BY id`;
  return store.all(sql) as unknown as readonly Token[];
}

/** Ends a token at once. @returns whether there was one */
export function revokeToken(store: Store, id: number): boolean {
  return store.transaction(() => store.run("DELETE FROM tokens WHERE id = ?", id).changes > 0);
}

/** The beginning says what it is, for people and for scanners that look for secrets in code. */
const prefixes = { link: "hpl_", session: "hps_", token: "hpt_" } as const;
type Kind = keyof typeof prefixes;

/** 256 bits: nobody finds one by trying (NIST SP 800-63B asks for 112). */
function makeCredential(kind: Kind): string {
  return `${prefixes[kind]}${randomBytes(32).toString("base64url")}`;
}

/** @returns null if it is none that Hotpush makes */
function kindOf(credential: string): Kind | null {
  if (!/^hp[lst]_[\w-]{43}$/.test(credential)) return null;
  return (Object.keys(prefixes) as Kind[]).find((kind) => credential.startsWith(prefixes[kind])) ?? null;
}

/** Without a salt: nothing about 256 random bits can be precomputed. */
function hashOf(credential: string): string {
  return createHash("sha256").update(credential).digest("hex");
}
