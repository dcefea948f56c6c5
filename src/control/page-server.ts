import type { IncomingMessage, Server } from "node:http";
import { type Attempts, createAttempts } from "../access/attempts.ts";
import { noteAction } from "../access/audit.ts";
import { findAnswer, keepAnswer } from "../access/repeats.ts";
import { findVisitor, type Scope, type Visitor } from "../access/tokens.ts";
import { printable } from "../platform/terminal/printable.ts";
import { answerCall, readCall } from "./answer.ts";
import { type ControlReply, type ControlRequest, type ControlSources, jsonReply, refusal } from "./route.ts";
import { serveCalls } from "./server.ts";

/** The scope that each call of the page needs. Only the operator's socket has others. */
const neededScopes: Readonly<Record<string, Scope>> = {
  "GET /projects": "read",
  "GET /deployments": "read",
  "GET /deployments/{id}": "read",
  "GET /deployments/{id}/log": "read",
  "GET /deployments/{id}/events": "read",
  "POST /deployments": "deploy",
  "POST /deployments/{id}/cancel": "deploy",
  "POST /rollback": "deploy",
};

/** Whose token it is. */
export type VisitorJson = Pick<Visitor, "name" | "scope">;

/**
 * The API behind the page's socket. The process that calls it may be taken over, so each call carries the token of a
 * visitor, and this checks it: without one, nothing can be read.
 */
export function createPageServer(sources: ControlSources): Server {
  const door: Door = { sources, attempts: createAttempts(), running: new Set() };
  return serveCalls((request) => answerVisitor(request, door));
}

interface Door {
  readonly sources: ControlSources;
  readonly attempts: Attempts;
  /** Requests with a key that are being answered. */
  readonly running: Set<string>;
}

async function answerVisitor(request: IncomingMessage, door: Door): Promise<ControlReply> {
  const { sources, attempts } = door;
  const address = reported(request, "x-visitor-address");
  const waitSeconds = attempts.waitSeconds(address ?? "", Date.now());
  if (waitSeconds > 0) return refusal(429, `Too many wrong attempts. Try again in ${waitSeconds} s.`);
  const token = /^Bearer (\S{1,100})$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
  const visitor = findVisitor(sources.access(), token, Date.now());
  if (visitor !== null) return await answerKnown(request, door, { visitor, token, address });
  if (token !== "") attempts.noteFailure(address ?? "", Date.now());
  return refusal(401, "This needs a token. On the server: hotpush token create --name <name> --read");
}

interface Known {
  readonly visitor: Visitor;
  readonly token: string;
  readonly address: string | null;
}

async function answerKnown(request: IncomingMessage, door: Door, known: Known): Promise<ControlReply> {
  const { visitor, address } = known;
  const { key, id, query } = readCall(request);
  if (key === "GET /visitor") return jsonReply(visitorJson(visitor));
  const needed = neededScopes[key];
  if (needed === undefined) return refusal(404, "This Hotpush does not know this request of the page.");
  if (needed === "read") return lasting(await answerCall(request, door.sources), door, known);
  const reply = visitor.scope === needed ? await act(request, door, visitor) : tooLittle(visitor);
  const status = reply.kind === "json" ? reply.status : 200;
  const action = actions[key] ?? key;
  note(door, { visitor, action, project: query.get("project"), deployment: id, address, status });
  return reply;
}

const actions: Readonly<Record<string, string>> = {
  "POST /deployments": "deploy",
  "POST /deployments/{id}/cancel": "cancel",
  "POST /rollback": "roll back",
};

function tooLittle({ name }: Visitor): ControlReply {
  return refusal(
    403,
    `The token ${name} may only look. On the server: hotpush token create --name <name> --deploy`,
  );
}

/** A request with a key that was answered before gets that answer again, and does nothing. */
async function act(request: IncomingMessage, door: Door, visitor: Visitor): Promise<ControlReply> {
  const { sources, running } = door;
  const [who, key] = [signature(visitor), reported(request, "idempotency-key")];
  if (key === null) return await actOnce(request, door, visitor);
  const answer = findAnswer(sources.access(), who, key, Date.now());
  if (answer !== null) return jsonReply(answer.value, answer.status);
  const name = `${who} ${key}`;
  if (running.has(name)) return refusal(409, "A request with this Idempotency-Key is being answered.");
  running.add(name);
  try {
    const reply = await actOnce(request, door, visitor);
    if (reply.kind === "json" && reply.status < 400)
      keepAnswer(
        sources.access(),
        { visitor: who, key, status: reply.status, value: reply.value },
        Date.now(),
      );
    return reply;
  } finally {
    running.delete(name);
  }
}

function actOnce(request: IncomingMessage, { sources }: Door, visitor: Visitor): Promise<ControlReply> {
  return answerCall(request, sources, (body) => ({ ...wantedIn(body), requestedBy: signature(visitor) }));
}

/** What a visitor may choose. Other members are for commands on this machine, such as the path of a directory. */
function wantedIn({ ref, version }: ControlRequest["body"]): ControlRequest["body"] {
  return { ref, version };
}

const recheckMs = 5_000;

/** A stream goes on for hours: it ends when the token that it was opened with is revoked. */
function lasting(reply: ControlReply, { sources }: Door, { token }: Known): ControlReply {
  if (reply.kind === "json") return reply;
  return {
    ...reply,
    write(response) {
      const timer = setInterval(() => {
        if (findVisitor(sources.access(), token, Date.now()) === null) response.destroy();
      }, recheckMs).unref();
      response.once("close", () => clearInterval(timer));
      reply.write(response);
    },
  };
}

function visitorJson({ name, scope }: Visitor): VisitorJson {
  return { name, scope };
}

/** The name that the record of deployments shows, with what proves it. */
function signature({ name, id }: Visitor): string {
  return `${name} (token ${id})`;
}

interface Noted extends Omit<Parameters<typeof noteAction>[1], "atMs" | "visitor"> {
  readonly visitor: Visitor | null;
}

/** The audit log must not keep anybody from acting: a full disk is reported by the health check. */
function note({ sources }: Door, { visitor, ...entry }: Noted): void {
  try {
    const name = visitor === null ? "nobody" : signature(visitor);
    noteAction(sources.access(), { ...entry, atMs: Date.now(), visitor: name });
  } catch (error) {
    sources.log.error(
      { event: "store.failed", err: error },
      "An action could not be written to the audit log",
    );
  }
}

const longestReported = 200;

/** What the page says of the visitor's browser; nothing proves it. */
function reported({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? printable(value, longestReported).trim() || null : null;
}
