import type { IncomingMessage, ServerResponse } from "node:http";
import { findVisitor, noteAction, type Visitor } from "#access/visitors";
import { attempt } from "#platform/files";
import {
  createHttpServer,
  isIn,
  jsonAnswer,
  listenOnSocket,
  problemAnswer,
  readText,
  sendAnswer,
  type UnixSocket,
} from "#platform/http-server";
import { printable } from "#platform/terminal";
import { type HttpProblemCode, type Problem, ProblemError, problems } from "#problems";
import type { Caller, ServiceContext, Stream } from "./context.ts";
import type { Call, FoundCall } from "./table.ts";

/** A person has a terminal or two; more at once is a mistake, and must not cost the service its descriptors. */
const mostCommands = 32;
/** The page bounds those of each visitor (front/page/run-client.ts). */
const mostFrontCalls = 512;
/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;

/**
 * Opens one of `run`'s sockets: HTTP/1.1 and JSON, one request per connection. Only the holder of the runner lock calls this,
 * so a socket that is there was left by a service that is gone. The operator's may be used by root and the service's user
 * alone. So may that of `front`, but if `front` is a process of another user, then by the group of its directory.
 *
 * @returns null if it could not be made: then the service runs without it
 */
export async function openSocket(
  context: ServiceContext,
  door: "operator" | "front",
  path: string,
): Promise<UnixSocket | null> {
  const { log } = context;
  const mostConnections = door === "operator" ? mostCommands : mostFrontCalls;
  const options =
    door === "front" && context.isSplit
      ? { mode: 0o660, mostConnections, isOfGroup: true }
      : { mode: 0o600, mostConnections };
  const serverOptions = { maxHeaderSize: 16_384, requireHostHeader: false };
  const server = createHttpServer(serverOptions, log, async (request, response) => {
    response.setHeader("connection", "close");
    await answerRequest(context, door, request, response);
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  try {
    const listening = await listenOnSocket(path, options, (socket) => {
      server.emit("connection", socket);
      socket.resume();
    });
    // So that neither a start waits for it, nor the first push. If it fails, the first call says why.
    setTimeout(() => loadCalls().catch(() => {}), loadAfterMs).unref();
    return listening;
  } catch (error) {
    const consequence = door === "operator" ? "Commands such as hotpush status" : "Calls of hotpush front";
    const text = `${consequence} cannot be answered: ${path} cannot be created`;
    log.error({ event: "control.unavailable", err: error }, text);
    return null;
  }
}

const longestBodyBytes = 16 * 1024;
const loadAfterMs = 100;

function loadCalls() {
  return Promise.all([import("./handlers.ts"), import("./table.ts")]);
}

/**
 * Answers a request at one of `run`'s sockets: over the operator's all is allowed; over front's, its own calls, and those with
 * the credential of a visitor. The right comes first: nothing of the request is read for somebody without it.
 */
async function answerRequest(
  context: ServiceContext,
  door: "operator" | "front",
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url = "", headers } = request;
  const [path = ""] = url.split("?", 1);
  const query = new URLSearchParams(url.slice(path.length + 1));
  const credential = /^Bearer (\S{1,100})$/.exec(headers.authorization ?? "")?.[1] ?? "";
  const caller = door === "operator" ? operator(request) : visitor(request, context, credential);
  const [{ handlers }, { findCall, readAsked, statusOf }] = await loadCalls();
  const found = findCall(method, path);
  try {
    if (door === "front") {
      const isNear = caller.address !== null && isIn(context.service.metricsNetworks, caller.address);
      authorize(found?.row.right ?? null, caller.visitor, credential === "" && isNear);
    }
    if (found === null) throw new ProblemError(unknownCall);
    const body = method === "POST" ? await readText(request, longestBodyBytes) : "";
    if (body === null) throw new ProblemError(tooLarge);
    // The request is whole. What it asks for may take long, and a script may be silent for long.
    request.socket.setTimeout(0);
    const note = (reply: object, status: number) =>
      door === "front" && noteInAudit(context, caller, found, query, reply, status);
    const handle = handlers[found.name] as (run: ServiceContext, asked: object, caller: Caller) => object;
    const answering = (async () => handle(context, readAsked(found, query, body), caller))();
    const reply = await answering.catch((error: unknown) => {
      if (error instanceof ProblemError) note({}, problems[refusalOf(error).code].status);
      throw error;
    });
    const { gives } = found.row;
    note(reply, statusOf(found.row));
    if (typeof gives !== "string") return sendAnswer(response, jsonAnswer(statusOf(found.row), reply));
    // Who has left meanwhile does not end what begins now.
    if (response.destroyed) return;
    response.writeHead(200, { "content-type": gives });
    response.flushHeaders();
    if (caller.visitor !== null) endWhenRevoked(response, context, credential);
    await (reply as Stream).write(response);
  } catch (error) {
    if (!(error instanceof ProblemError) || response.headersSent) throw error;
    const refusal = refusalOf(error);
    const isTooLarge = refusal.code === "payload_too_large";
    sendAnswer(response, problemAnswer({ ...refusal, ...(isTooLarge && { closing: "refused" }) }));
  }
}

const tooLarge = { code: "payload_too_large", detail: "A call takes a body of up to 16 KiB." } as const;
const unknownCall = {
  code: "not_found",
  detail: "This Hotpush does not know this call. Are both of the same version? See /api/openapi.json.",
} as const;

const notSignedIn = {
  code: "not_signed_in",
  detail: "Sign in: run hotpush open on the server, and follow the link.",
} as const;

/**
 * Decides whether a call over front's socket is allowed.
 *
 * @param right of the call; null: there is no such call
 * @param visitor whose credential the request shows; null: nobody's
 * @param mayScrape whether the metrics are open to the address from which it is made
 * @throws ProblemError why it is not. For visitors, what only the operator's socket has is not there
 */
function authorize(right: Call["right"] | null, visitor: Visitor | null, mayScrape: boolean): void {
  if (right === "front" || (right === "scraper" && mayScrape)) return;
  if (visitor === null) throw new ProblemError(notSignedIn);
  if (right === null || right === "server") throw new ProblemError(unknownCall);
  if (right === "operator" && visitor.role !== "operator")
    throw new ProblemError({
      code: "not_allowed",
      detail: `This takes an operator, or a token made with --deploy: ${visitor.name} may only look.`,
    });
}

const nobody: Caller = { visitor: null, name: null, address: null, agent: null };

/** Whose socket it is proves that everything is allowed. Commands write a name as a URL does. */
function operator(request: IncomingMessage): Caller {
  const encoded = reported(request, "x-requested-by") ?? "";
  const name = attempt(() => decodeURIComponent(encoded), "");
  return { ...nobody, name: printable(name, 100).trim() || null };
}

/** The name for the record is that of the credential, with what proves it; the rest is as the page reports it. */
function visitor(request: IncomingMessage, { store }: ServiceContext, credential: string): Caller {
  const known = credential === "" ? null : findVisitor(store, credential, Date.now());
  return {
    visitor: known,
    name: known && `${known.name} (${known.kind} ${known.id})`,
    address: reported(request, "x-visitor-address"),
    agent: reported(request, "x-visitor-agent"),
  };
}

const longestReported = 2_000;

/** What the other side says of the person; nothing proves it. */
function reported({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? printable(value, longestReported).trim() || null : null;
}

/** Most problems are those of a deployment or of the service, and no answer of HTTP. */
function refusalOf({ problem: { code, detail } }: ProblemError): Problem<HttpProblemCode> {
  return { code: "status" in problems[code] ? (code as HttpProblemCode) : "not_possible", detail };
}

/** What visitors do, not what they see. The audit log must not keep anybody from acting: the health check reports a full disk. */
function noteInAudit(
  { store, log }: ServiceContext,
  caller: Caller,
  { name: action, row, parameters }: FoundCall,
  query: URLSearchParams,
  reply: object,
  status: number,
): void {
  const atMs = Date.now();
  const session = "session" in reply ? findVisitor(store, String(reply.session), atMs) : null;
  const signedIn = session && `${session.name} (session ${session.id})`;
  // A token cannot sign out: its attempts would push out what was done.
  const isSignOut = action === "signOut" && caller.visitor?.kind === "session";
  const isDone = isSignOut || (row.right === "operator" && row.method === "POST");
  const visitor = isDone ? caller.name : signedIn;
  if (visitor === null) return;
  const { id, project: named = query.get("project") } = parameters;
  const deployment = id === undefined || id === "latest" ? null : Number(id);
  const project = named === "_" ? null : named;
  try {
    noteAction(store, { atMs, visitor, action, project, deployment, address: caller.address, status });
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "An action could not be written to the audit log");
  }
}

const recheckMs = 5_000;

/** A stream goes on for hours: it ends when the session that it was opened with is revoked. */
function endWhenRevoked(response: ServerResponse, { store }: ServiceContext, credential: string): void {
  const timer = setInterval(() => {
    try {
      if (!response.destroyed && findVisitor(store, credential, Date.now()) !== null) return;
    } catch {
      // Nobody can say any more whether it holds.
    }
    clearInterval(timer);
    response.destroy();
  }, recheckMs).unref();
}
