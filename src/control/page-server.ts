import type { IncomingMessage, Server } from "node:http";
import { createRefusalCounter, type NoteRefusal, noteAction } from "../access/audit.ts";
import { findAnswer, keepAnswer } from "../access/repeats.ts";
import { listSessions, openLink, revokeSession } from "../access/sign-in.ts";
import { findVisitor, type Visitor } from "../access/visitor.ts";
import { isIn } from "../platform/client-address.ts";
import { repeat } from "../platform/repeat.ts";
import { printable } from "../platform/terminal/printable.ts";
import { answerCall, answerRead, readRequestBody, unreadable } from "./answer.ts";
import { readCall, visitorCalls } from "./calls.ts";
import { instant } from "./deployment-json.ts";
import { type ControlReply, type ControlRequest, type ControlSources, jsonReply, refusal } from "./route.ts";
import { serveCalls } from "./server.ts";
import type { OwnSessionJson, VisitorJson } from "./visitor-json.ts";

/**
 * The API behind the page's socket. The process that calls it may be taken over, so each call carries the credential of a
 * visitor, and this checks it: without one, nothing can be read.
 */
export function createPageServer(sources: ControlSources): Server {
  const noteRefusal = createRefusalCounter(sources.access, (error) => logUnwritten(sources, error));
  const door: Door = { sources, noteRefusal, running: new Set() };
  return serveCalls(sources.log, (request) => answerVisitor(request, door));
}

interface Door {
  readonly sources: ControlSources;
  readonly noteRefusal: NoteRefusal;
  /** Requests with a key that are being answered. */
  readonly running: Set<string>;
}

/** The credential comes first: nothing of the request is read for somebody without one, but a link that signs in. */
async function answerVisitor(request: IncomingMessage, door: Door): Promise<ControlReply> {
  const { sources } = door;
  const { method, url, headers } = request;
  if (method === "POST" && url?.startsWith("/front/")) {
    const body = await readText(request);
    const answered = body === null ? null : await sources.answerFront(url, body);
    return answered === null
      ? refusal(400, "Hotpush run does not know this call of front.")
      : jsonReply(answered);
  }
  const address = reported(request, "x-visitor-address");
  const credential = /^Bearer (\S{1,100})$/.exec(headers.authorization ?? "")?.[1] ?? "";
  const visitor = findVisitor(sources.access(), credential, Date.now());
  if (visitor !== null) return await answerKnown(request, door, { visitor, credential, address });
  if (method === "POST" && url === "/sessions") return await signIn(request, door, address);
  const mayScrape = credential === "" && address !== null && isIn(sources.metricsNetworks, address);
  if (mayScrape && method === "GET" && url === "/metrics") return await answerCall(request, sources);
  return refusal(401, "Sign in: run hotpush open on the server, and follow the link.");
}

const longestFrontBody = 16 * 1024;

/** @returns null if it is too long */
async function readText(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestFrontBody) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** An answer to a link that is refused does not say why: it could be a guess. */
async function signIn(request: IncomingMessage, door: Door, address: string | null): Promise<ControlReply> {
  const { sources } = door;
  const { link } = (await readRequestBody(request)) ?? {};
  const agent = reported(request, "x-visitor-agent");
  const session =
    typeof link === "string" ? openLink(sources.access(), link, { address, agent }, Date.now()) : null;
  const visitor = session === null ? null : findVisitor(sources.access(), session, Date.now());
  const status = session === null ? 401 : 200;
  note(door, { visitor, action: "sign in", project: null, deployment: null, address, status });
  if (session !== null) return jsonReply({ session });
  return refusal(401, "This link was used, or is older than two minutes. For a new one: hotpush open");
}

interface Known {
  readonly visitor: Visitor;
  readonly credential: string;
  readonly address: string | null;
}

async function answerKnown(request: IncomingMessage, door: Door, known: Known): Promise<ControlReply> {
  const { visitor, address } = known;
  const { key, id, query } = readCall(request.method, request.url);
  if (key === "GET /visitor") return jsonReply(visitorJson(visitor));
  if (key === "GET /sessions") return jsonReply({ sessions: ownSessions(door, visitor) });
  if (key === "POST /sign-out") return signOut(request, door, known);
  const needed = visitorCalls.get(key);
  if (needed === undefined) return refusal(404, "This Hotpush does not know this request of the page.");
  if (needed === "read") return lasting(await answerCall(request, door.sources), door, known);
  const reply = visitor.rights.includes(needed)
    ? await act(request, door, visitor)
    : refusal(403, `${visitor.name} may only look. This takes an operator, or a token made with --deploy.`);
  const action = actions[key] ?? key;
  const status = reply.kind === "json" ? reply.status : 200;
  note(door, { visitor, action, project: query.get("project"), deployment: id, address, status });
  return reply;
}

const actions: Readonly<Record<string, string>> = {
  "POST /deployments": "deploy",
  "POST /deployments/{id}/cancel": "cancel",
  "POST /rollback": "roll back",
  "POST /pause": "pause",
  "POST /resume": "resume",
};

/** A request with a key that was answered before gets that answer again, and does nothing. */
async function act(request: IncomingMessage, door: Door, visitor: Visitor): Promise<ControlReply> {
  const { sources, running } = door;
  const [who, key] = [signature(visitor), reported(request, "idempotency-key")];
  const body = await readRequestBody(request);
  if (body === null) return unreadable;
  const asked = {
    ...readCall(request.method, request.url),
    body: { ...wantedIn(body), requestedBy: who },
  };
  if (key === null) return await answerRead(asked, sources);
  const wanted = `${request.method} ${request.url} ${JSON.stringify(wantedIn(body))}`;
  const answer = findAnswer(sources.access(), who, key, Date.now());
  if (answer !== null && answer.request !== wanted)
    return refusal(422, "This Idempotency-Key was used for another request. Use a new key for each request.");
  if (answer !== null) return jsonReply(answer.value, answer.status);
  const name = `${who} ${key}`;
  if (running.has(name)) return refusal(409, "A request with this Idempotency-Key is being answered.");
  running.add(name);
  try {
    const reply = await answerRead(asked, sources);
    if (reply.kind === "json" && reply.status < 400) {
      const { status, value } = reply;
      try {
        keepAnswer(sources.access(), { visitor: who, key, request: wanted, status, value }, Date.now());
      } catch (error) {
        // What was done must be answered as done: a caller who gets a fault would do it again.
        logUnwritten(sources, error);
      }
    }
    return reply;
  } finally {
    running.delete(name);
  }
}

/** What a visitor may choose. Other members are for commands on this machine, such as the path of a directory. */
function wantedIn({ ref, version, reason }: ControlRequest["body"]): ControlRequest["body"] {
  return { ref, version, reason };
}

/** Those of the same person, which are the ones that they may end. */
function ownSessions({ sources }: Door, { kind, name, rights }: Visitor): readonly OwnSessionJson[] {
  if (kind !== "session") return [];
  return listSessions(sources.access(), Date.now())
    .filter((session) => session.name === name && (session.role === "operator") === rights.includes("deploy"))
    .map(({ id, address, agent, createdAtMs, lastSeenAtMs }) => ({
      ...{ id, address, agent, createdAt: instant(createdAtMs), lastSeenAt: instant(lastSeenAtMs) },
    }));
}

async function signOut(request: IncomingMessage, door: Door, known: Known): Promise<ControlReply> {
  const { visitor, address } = known;
  if (visitor.kind !== "session")
    return refusal(409, "A token is revoked on the server: hotpush token revoke");
  const wanted = (await readRequestBody(request))?.id ?? visitor.id;
  const session = ownSessions(door, visitor).find(({ id }) => id === wanted);
  if (session === undefined) return refusal(404, "This session has ended already.");
  revokeSession(door.sources.access(), session.id);
  note(door, { visitor, action: "sign out", project: null, deployment: null, address, status: 200 });
  return jsonReply({ id: session.id });
}

const recheckMs = 5_000;

/** A stream goes on for hours: it ends when the session that it was opened with is revoked. */
function lasting(reply: ControlReply, { sources }: Door, { credential }: Known): ControlReply {
  if (reply.kind === "json") return reply;
  return {
    ...reply,
    async write(response) {
      const check = async () => {
        if (findVisitor(sources.access(), credential, Date.now()) === null) response.destroy();
      };
      const checking = repeat(check, { intervalMs: recheckMs, onFault: () => response.destroy() });
      checking.start();
      response.once("close", checking.stop);
      await reply.write(response);
    },
  };
}

function visitorJson({ name, kind, rights, id }: Visitor): VisitorJson {
  return { name, kind, rights, id };
}

/** The name that the record of deployments shows, with what proves it. */
function signature({ name, kind, id }: Visitor): string {
  return `${name} (${kind} ${id})`;
}

interface Noted extends Omit<Parameters<typeof noteAction>[1], "atMs" | "visitor"> {
  readonly visitor: Visitor | null;
}

/** The audit log must not keep anybody from acting: a full disk is reported by the health check. */
function note({ sources, noteRefusal }: Door, { visitor, ...entry }: Noted): void {
  const { action, address, status } = entry;
  const name = visitor === null ? "nobody" : signature(visitor);
  const atMs = Date.now();
  if (status === 401 || status === 403) {
    noteRefusal({ visitor: name, action, address, lastAtMs: atMs });
    return;
  }
  try {
    noteAction(sources.access(), { ...entry, atMs, visitor: name });
  } catch (error) {
    logUnwritten(sources, error);
  }
}

function logUnwritten({ log }: ControlSources, error: unknown): void {
  log.error({ event: "store.failed", err: error }, "An action could not be written to the audit log");
}

const longestReported = 200;

/** What the page says of the visitor's browser; nothing proves it. */
function reported({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? printable(value, longestReported).trim() || null : null;
}
