import { createHash, randomBytes } from "node:crypto";
import { attempt } from "#platform/files";
import type { Store } from "#platform/sqlite";

/** Of a link, a session and a token only the SHA-256 is kept: who reads the file cannot sign in with it. */
export const accessTables = `
    CREATE TABLE credentials (
      id            INTEGER PRIMARY KEY AUTOINCREMENT, -- names it in commands
      kind          TEXT NOT NULL CHECK (kind IN ('link', 'session', 'token')),
      hash          TEXT NOT NULL UNIQUE,
      name          TEXT NOT NULL,
      role          TEXT NOT NULL CHECK (role IN ('viewer', 'operator')),
      created_at_ms INTEGER NOT NULL,
      seen_at_ms    INTEGER,             -- to the minute; null: a token was never used
      address       TEXT,                -- of a session, as the page reported it
      agent         TEXT
    ) STRICT;
    -- what was done over the page's socket, by whom
    CREATE TABLE audit (
      id         INTEGER PRIMARY KEY AUTOINCREMENT,
      at_ms      INTEGER NOT NULL,
      visitor    TEXT NOT NULL,
      action     TEXT NOT NULL,
      project    TEXT,
      deployment INTEGER,
      address    TEXT,
      status     INTEGER NOT NULL          -- of the answer
    ) STRICT;`;

/** Somebody, or a program, that calls over the page's socket. */
export interface Visitor {
  /** As the operator named it when the link or the token was made. */
  readonly name: string;
  readonly kind: "session" | "token";
  /** Of the session or the token. */
  readonly id: number;
  /** A viewer looks; an operator also deploys, cancels, rolls back and pauses. */
  readonly role: "viewer" | "operator";
}

/** A session or a token, without its secret. */
export interface ListedVisitor extends Visitor {
  /** Where a browser is, as the page reports it; nothing proves it. */
  readonly address: string | null;
  readonly agent: string | null;
  readonly createdAtMs: number;
  /** To the minute; null: a token was never used. */
  readonly seenAtMs: number | null;
}

/** Long enough to click, too short to be found in a chat later. */
export const linkLastsMs = 120_000;
/** People sign in again a month after their last visit. */
export const sessionLastsMs = 30 * 24 * 3_600_000;
/** A visit is written at most this often: a page that is open asks all the time. */
const noteEveryMs = 60_000;
/** The beginning says what it is, for people and for scanners that look for secrets in code. */
const prefixes = { link: "hpl_", session: "hps_", token: "hpt_" } as const;

/** @returns whose credential it is; null if it is none, is a link, has expired or was revoked */
export function findVisitor(store: Store, credential: string, nowMs: number): Visitor | null {
  const hash = hashOf(credential);
  const sql =
    "SELECT id, name, kind, role, seen_at_ms AS seen FROM credentials WHERE hash = ? AND kind <> 'link'";
  const row = store.get(sql, hash);
  if (row === undefined) return null;
  const { seen, ...visitor } = row as unknown as Visitor & { readonly seen: number | null };
  const silentMs = nowMs - (seen ?? 0);
  if (visitor.kind === "session" && silentMs > sessionLastsMs) return null;
  if (silentMs > noteEveryMs) noteVisit(store, nowMs, hash);
  return visitor;
}

/** A full disk, which the health check reports, keeps nobody from looking. */
function noteVisit(store: Store, nowMs: number, hash: string): void {
  const sql = "UPDATE credentials SET seen_at_ms = ? WHERE hash = ?";
  // If it fails, the next request tries again.
  attempt(() => store.transaction(() => store.run(sql, nowMs, hash)), null);
}

/**
 * Makes a link, which opens one session within two minutes, or a token.
 *
 * @returns its number, and its secret, which is shown once and kept nowhere
 */
export function makeCredential(
  store: Store,
  kind: "link" | "token",
  { name, role }: Pick<Visitor, "name" | "role">,
  nowMs: number,
): { readonly id: number; readonly secret: string } {
  const secret = makeSecret(kind);
  const sql = "INSERT INTO credentials (kind, hash, name, role, created_at_ms) VALUES (?, ?, ?, ?, ?)";
  return store.transaction(() => {
    removeExpired(store, nowMs);
    return { id: store.run(sql, kind, hashOf(secret), name, role, nowMs).id, secret };
  });
}

/**
 * Makes a link a session. Its secret is always a new one: one that somebody planted in a browser is never taken over.
 *
 * @returns the secret of the session; null if the link was used, has expired or is none
 */
export function openLink(
  store: Store,
  link: string,
  { address, agent }: Pick<ListedVisitor, "address" | "agent">,
  nowMs: number,
): string | null {
  const secret = makeSecret("session");
  const sql = `UPDATE credentials SET kind = 'session', hash = ?, created_at_ms = ?, seen_at_ms = ?, address = ?, agent = ?
    WHERE hash = ? AND kind = 'link'`;
  return store.transaction(() => {
    removeExpired(store, nowMs);
    const { changes } = store.run(sql, hashOf(secret), nowMs, nowMs, address, agent, hashOf(link));
    return changes === 0 ? null : secret;
  });
}

function removeExpired(store: Store, nowMs: number): void {
  const sql = `DELETE FROM credentials
    WHERE (kind = 'link' AND created_at_ms < ?) OR (kind = 'session' AND seen_at_ms < ?)`;
  store.run(sql, nowMs - linkLastsMs, nowMs - sessionLastsMs);
}

/** 256 bits: nobody finds one by trying (NIST SP 800-63B asks for 112). */
function makeSecret(kind: keyof typeof prefixes): string {
  return `${prefixes[kind]}${randomBytes(32).toString("base64url")}`;
}

/** The sessions that have not expired and the tokens, the newest first. */
export function listVisitors(store: Store, nowMs: number): readonly ListedVisitor[] {
  const sql = `SELECT id, kind, name, role, created_at_ms AS createdAtMs, seen_at_ms AS seenAtMs, address, agent
    FROM credentials WHERE kind = 'token' OR (kind = 'session' AND seen_at_ms >= ?) ORDER BY id DESC`;
  return store.all(sql, nowMs - sessionLastsMs) as unknown as readonly ListedVisitor[];
}

/** Ends a session or a token at once. @returns whose it was; null if there is none */
export function revokeVisitor(store: Store, id: number): Visitor | null {
  const sql = "DELETE FROM credentials WHERE id = ? AND kind <> 'link' RETURNING id, name, kind, role";
  return store.transaction(() => store.get(sql, id) as Visitor | undefined) ?? null;
}

/** Without a salt: nothing about 256 random bits can be precomputed. */
function hashOf(credential: string): string {
  return createHash("sha256").update(credential).digest("hex");
}

/** Something that was done over the page's socket by somebody who may. */
export interface AuditEntry {
  readonly atMs: number;
  /** A name, and how it was proven: "Ann (session 3)". */
  readonly visitor: string;
  /** The name of the call, such as `deploy`. */
  readonly action: string;
  readonly project: string | null;
  readonly deployment: number | null;
  /** Of the visitor, as the page reported it. */
  readonly address: string | null;
  /** The status of the answer. */
  readonly status: number;
}

/** More than a year of a busy team. */
const entriesKept = 20_000;

export function noteAction(store: Store, entry: AuditEntry): void {
  const { atMs, visitor, action, project, deployment, address, status } = entry;
  store.transaction(() => {
    const sql = `INSERT INTO audit (at_ms, visitor, action, project, deployment, address, status)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    const { id } = store.run(sql, atMs, visitor, action, project, deployment, address, status);
    store.run("DELETE FROM audit WHERE id <= ?", id - entriesKept);
  });
}

/** The newest first. */
export function listActions(store: Store, limit: number): readonly AuditEntry[] {
  const sql = `SELECT at_ms AS atMs, visitor, action, project, deployment, address, status
    FROM audit ORDER BY id DESC LIMIT ?`;
  return store.all(sql, limit) as unknown as readonly AuditEntry[];
}
