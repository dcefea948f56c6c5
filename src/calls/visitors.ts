import * as v from "valibot";
import { listActions, listRefusals } from "#access/audit";
import { linkLastsMs, listSessions, makeLink, openLink, revokeSession, type Session } from "#access/sign-in";
import { createToken, listTokens, revokeToken } from "#access/tokens";
import type { Visitor } from "#access/visitor";
import { call, personText, refuse, type ServerContext, takes } from "./call.ts";
import * as shapes from "./shapes.ts";
import { instant, instantOrNull, type SessionJson } from "./shapes.ts";

const longestName = 60;
const usualEntries = 50;
const name = v.pipe(
  v.string("Give a name, as the record will have it: --name Ann"),
  v.transform((text) => personText(text, longestName) ?? ""),
  v.string(),
  v.minLength(1, "Give a name, as the record will have it: --name Ann"),
);
const ended = v.strictObject({ id: v.number() });

/** The calls about who may call. */
export const visitorCalls = {
  visitor: call({
    does: "Who asks, and what they may do",
    ...{ method: "GET", path: "/visitor", right: "viewer", takes: {}, gives: shapes.visitor },
    handle: (_server, _asked, { visitor }) =>
      visitor ?? refuse("not_possible", "Over this socket nobody is a visitor: everything is allowed."),
  }),
  /** An answer to a link that is refused does not say why: it could be a guess. */
  signIn: call({
    does: "Use up a link of `hotpush open`, for a session",
    ...{ method: "POST", path: "/sessions", right: "nobody", takes: { link: takes.text } },
    gives: v.strictObject({ session: v.string() }),
    handle({ access }, { link }, browser) {
      const session = openLink(access(), link, browser, Date.now());
      if (session !== null) return { session };
      return refuse(
        "not_signed_in",
        "This link was used, or is older than two minutes. For a new one: hotpush open",
      );
    },
  }),
  sessions: call({
    does: "Your sessions; over the operator's socket, those of everybody",
    ...{ method: "GET", path: "/sessions", right: "viewer", takes: {} },
    gives: v.strictObject({ sessions: v.array(shapes.session) }),
    handle: (server, _asked, { visitor }) => ({ sessions: sessionsOf(server, visitor).map(sessionJson) }),
  }),
  signOut: call({
    does: "End a session of yours: this one, or the one with `id`",
    ...{ method: "POST", path: "/sign-out", right: "viewer", takes: { id: v.optional(takes.number) } },
    gives: ended,
    handle(server, asked, { visitor }) {
      if (visitor?.kind !== "session")
        return refuse("not_possible", "A token is revoked on the server: hotpush open --end-token <id>");
      const id = asked.id ?? visitor.id;
      if (!sessionsOf(server, visitor).some((session) => session.id === id))
        return refuse("not_found", "This session has ended already.");
      revokeSession(server.access(), id);
      return { id };
    },
  }),
  makeLink: call({
    does: "Make a link that signs somebody in to the page, for two minutes and once",
    ...{ method: "POST", path: "/links", right: "server", takes: { name, role: v.picklist(shapes.roles) } },
    gives: v.strictObject({
      ...{ link: v.string(), url: v.nullable(v.string()), name: v.string(), role: v.picklist(shapes.roles) },
      lastsMs: v.number(),
    }),
    handle({ access, pageUrl }, asked) {
      const link = makeLink(access(), asked, Date.now());
      const url = pageUrl && new URL(`/sign-in?link=${link}`, pageUrl).href;
      return { link, url, ...asked, lastsMs: linkLastsMs };
    },
  }),
  endSession: call({
    does: "End a session at once",
    ...{
      method: "POST",
      path: "/sessions/:id/end",
      right: "server",
      takes: { id: takes.number },
      gives: ended,
    },
    handle({ access }, { id }) {
      if (revokeSession(access(), id)) return { id };
      return refuse("not_found", `There is no session ${id}. See: hotpush open --list`);
    },
  }),
  makeToken: call({
    does: "Make a token for a program; it is shown once",
    ...{ method: "POST", path: "/tokens", right: "server" },
    takes: { name, scope: v.picklist(shapes.scopes, "Give the token a scope: read or deploy.") },
    gives: v.strictObject({
      ...{ id: v.number(), secret: v.string(), name: v.string(), scope: v.picklist(shapes.scopes) },
    }),
    handle: ({ access }, asked) => ({ ...createToken(access(), asked, Date.now()), ...asked }),
  }),
  tokens: call({
    does: "The tokens, without their secrets",
    ...{ method: "GET", path: "/tokens", right: "server", takes: {} },
    gives: v.strictObject({ tokens: v.array(shapes.token) }),
    handle: ({ access }) => ({
      tokens: listTokens(access()).map(({ createdAtMs, lastUsedAtMs, ...same }) => ({
        ...{ ...same, createdAt: instant(createdAtMs), lastUsedAt: instantOrNull(lastUsedAtMs) },
      })),
    }),
  }),
  endToken: call({
    does: "End a token at once",
    ...{
      method: "POST",
      path: "/tokens/:id/end",
      right: "server",
      takes: { id: takes.number },
      gives: ended,
    },
    handle({ access }, { id }) {
      if (revokeToken(access(), id)) return { id };
      return refuse("not_found", `There is no token ${id}. See: hotpush open --list`);
    },
  }),
  audit: call({
    does: "What was done over the page and its API, and how often somebody tried what they may not",
    ...{ method: "GET", path: "/audit", right: "server", takes: { limit: takes.limit }, gives: shapes.audit },
    handle: ({ access }, { limit = usualEntries }) => ({
      entries: listActions(access(), limit).map(({ atMs, ...same }) => ({ at: instant(atMs), ...same })),
      refusals: listRefusals(access()).map(({ lastAtMs, ...same }) => ({
        ...same,
        lastAt: instant(lastAtMs),
      })),
    }),
  }),
};

/** Those of the same person in the same role, which are the ones that they may end; without a visitor, all. */
function sessionsOf({ access }: ServerContext, visitor: Visitor | null): readonly Session[] {
  const sessions = listSessions(access(), Date.now());
  if (visitor === null) return sessions;
  if (visitor.kind !== "session") return [];
  return sessions.filter(({ name: whose, role }) => whose === visitor.name && role === visitor.role);
}

function sessionJson({ createdAtMs, lastSeenAtMs, ...same }: Session): SessionJson {
  return { ...same, createdAt: instant(createdAtMs), lastSeenAt: instant(lastSeenAtMs) };
}
