import { type AuditEntry, listActions, listRefusals, type Refusals } from "../access/audit.ts";
import { linkLastsMs, listSessions, makeLink, revokeSession, type Session } from "../access/sign-in.ts";
import { createToken, listTokens, revokeToken, type Token } from "../access/tokens.ts";
import { printable } from "../platform/terminal/printable.ts";
import { instant } from "./deployment-json.ts";
import { jsonReply, refusal, type WholeRoute } from "./route.ts";

/** Times as commands print them with --json. */
type Dated<Of> = {
  readonly [Key in keyof Of as Key extends `${infer Name}AtMs`
    ? `${Name}At`
    : Key extends "atMs"
      ? "at"
      : Key]: Key extends `${string}tMs` ? Exclude<Of[Key], number> | string : Of[Key];
};

export type SessionJson = Dated<Session>;
export type TokenJson = Dated<Token>;
export type AuditJson = Dated<AuditEntry>;
export type RefusalsJson = Dated<Refusals>;

const longestName = 60;

/** A link that signs somebody in to the page, for two minutes and once. */
export const makeSignInLink: WholeRoute = ({ access, pageUrl }, { body }) => {
  const name = nameIn(body);
  if (name === null) return refusal(400, "Whom is the link for? Give a name: hotpush open --name Ann");
  const role = body.role === "operator" ? "operator" : "viewer";
  const link = makeLink(access(), { name, role }, Date.now());
  const url = pageUrl && new URL(`/sign-in?link=${link}`, pageUrl).href;
  return jsonReply({ link, url, role, name, lastsMs: linkLastsMs });
};

export const showSessions: WholeRoute = ({ access }) => {
  const sessions = listSessions(access(), Date.now()).map(
    ({ createdAtMs, lastSeenAtMs, ...same }): SessionJson => ({
      ...same,
      createdAt: instant(createdAtMs),
      lastSeenAt: instant(lastSeenAtMs),
    }),
  );
  return jsonReply({ sessions });
};

export const endSession: WholeRoute = ({ access }, { body }) => {
  const id = Number(body.id);
  if (revokeSession(access(), id)) return jsonReply({ id });
  return refusal(404, `There is no session ${id}. See: hotpush session list`);
};

export const makeToken: WholeRoute = ({ access }, { body }) => {
  const name = nameIn(body);
  if (name === null)
    return refusal(400, "What is the token for? Give a name: hotpush token create --name ci");
  if (body.scope !== "read" && body.scope !== "deploy")
    return refusal(400, "Give the token a scope: --read or --deploy.");
  return jsonReply({
    ...createToken(access(), { name, scope: body.scope }, Date.now()),
    name,
    scope: body.scope,
  });
};

export const showTokens: WholeRoute = ({ access }) => {
  const tokens = listTokens(access()).map(
    ({ createdAtMs, lastUsedAtMs, ...same }): TokenJson => ({
      ...same,
      createdAt: instant(createdAtMs),
      lastUsedAt: lastUsedAtMs === null ? null : instant(lastUsedAtMs),
    }),
  );
  return jsonReply({ tokens });
};

export const endToken: WholeRoute = ({ access }, { body }) => {
  const id = Number(body.id);
  if (revokeToken(access(), id)) return jsonReply({ id });
  return refusal(404, `There is no token ${id}. See: hotpush token list`);
};

const usualLimit = 50;
const largestLimit = 1_000;

export const showAudit: WholeRoute = ({ access }, { query }) => {
  const limit = Number(query.get("limit") ?? usualLimit);
  if (!Number.isSafeInteger(limit) || limit < 1)
    return refusal(400, "The limit must be a number from 1 to 1,000.");
  const entries = listActions(access(), Math.min(limit, largestLimit)).map(
    ({ atMs, ...same }): AuditJson => ({ at: instant(atMs), ...same }),
  );
  const refusals = listRefusals(access()).map(
    ({ lastAtMs, ...same }): RefusalsJson => ({ ...same, lastAt: instant(lastAtMs) }),
  );
  return jsonReply({ entries, refusals });
};

function nameIn({ name }: Readonly<Record<string, unknown>>): string | null {
  return typeof name === "string" ? printable(name, longestName).trim() || null : null;
}
