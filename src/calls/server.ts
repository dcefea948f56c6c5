import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { noteAction } from "#access/audit";
import { findVisitor } from "#access/visitors";
import type { AskRun } from "#deployments/push";
import { repeat } from "#platform/async";
import { jsonAnswer, problemAnswer, sendAnswer } from "#platform/http-answer";
import { createHttpServer, isIn, readText } from "#platform/http-server";
import { listenOnSocket, type UnixSocket } from "#platform/listen";
import { printable } from "#platform/terminal";
import { ProblemError, problems } from "#problems";
import { type Caller, isRefused, type Refused, refuse, type ServerContext, type Stream } from "./context.ts";
import type { FoundCall } from "./table.ts";

/** Over the operator's socket all is allowed; over front's, its own calls, and those with the credential of a visitor. */
type Door = "operator" | "front";

/** A person has a terminal or two; more at once is a mistake, and must not cost the service its descriptors. */
const mostCommands = 32;
/** The page bounds those of each visitor (front/page/run-client.ts). */
const mostFrontCalls = 512;
/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;
const longestBodyBytes = 16 * 1024;

/**
 * Opens one of `run`'s sockets: HTTP/1.1 and JSON, one request per connection. Only the holder of the runner lock calls this,
 * so a socket that is there was left by a service that is gone. The operator's may be used by root and the service's user
 * alone, the page's by the group of its directory, because the page is a process of another user.
 *
 * @returns null if it could not be made: then the service runs without it
 */
export async function openSocket(
  server: ServerContext,
  door: Door,
  path: string,
): Promise<UnixSocket | null> {
  const { log, pageUrl, isSplit } = server;
  let opened: Promise<Server> | null = null;
  const serve = async (socket: Socket) => {
    opened ??= createCallServer(server, door);
    (await opened).emit("connection", socket);
    socket.resume();
  };
  const options =
    door === "operator"
      ? { mode: 0o600, mostConnections: mostCommands }
      : { mode: 0o660, mostConnections: mostFrontCalls, isOfGroup: true };
  try {
    return await listenOnSocket(path, options, (socket) => {
      serve(socket).catch((error: unknown) => {
        log.error({ event: "control.failed", err: error }, "A command could not be answered");
        socket.destroy();
      });
    });
  } catch (error) {
    const consequence = door === "operator" ? "Commands such as hotpush status" : "Calls of hotpush front";
    const isMissed = door === "operator" || isSplit || pageUrl !== null;
    const text = `${consequence} cannot be answered: ${path} cannot be created`;
    log[isMissed ? "error" : "debug"]({ event: "control.unavailable", err: error }, text);
    return null;
  }
}

/** Answers the `front` that is in this process, by the same table. */
export function answerFront(server: ServerContext): AskRun {
  return async (path, body) => {
    const table = await loadTable();
    const found = table.findCall("POST", path);
    if (found?.row.right !== "front") return null;
    const reply = await answerCall(table, server, found, new URLSearchParams(), body, nobody);
    return isRefused(reply) ? null : reply;
  };
}

const nobody: Caller = { visitor: null, name: null, address: null, agent: null };

/** Loaded when the first call comes: a start does not wait for it. */
async function loadTable() {
  const [{ findCall, readAsked }, { handlers }] = await Promise.all([
    import("./table.ts"),
    import("./handlers.ts"),
  ]);
  return { findCall, readAsked, handlers };
}
type Table = Awaited<ReturnType<typeof loadTable>>;

async function createCallServer(context: ServerContext, door: Door): Promise<Server> {
  const table = await loadTable();
  const options = { maxHeaderSize: 16_384, requireHostHeader: false };
  const server = createHttpServer(options, context.log, async (request, response) => {
    response.setHeader("connection", "close");
    await answerRequest(table, context, door, request, response);
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

/** The right comes first: nothing of the request is read for somebody without it. */
async function answerRequest(
  table: Table,
  context: ServerContext,
  door: Door,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method = "", url = "", headers } = request;
  const [path = ""] = url.split("?", 1);
  const query = new URLSearchParams(url.slice(path.length + 1));
  const credential = /^Bearer (\S{1,100})$/.exec(headers.authorization ?? "")?.[1] ?? "";
  const caller = door === "operator" ? operator(request) : visitor(request, context, credential);
  const found = table.findCall(method, path);
  const refused = door === "operator" ? null : authorize(context, caller, found, credential === "");
  if (refused !== null || found === null) return send(response, refused ?? unknownCall);
  const body = method === "POST" ? await readText(request, longestBodyBytes) : "";
  if (body === null) return send(response, tooLarge);
  const reply = await answerCall(table, context, found, query, body, caller);
  const status = isRefused(reply) ? problems[reply.code].status : (found.row.status ?? 200);
  if (door === "front") noteInAudit(context, { caller, found, query, reply, status });
  if (!isStream(reply)) return send(response, reply, status);
  // A stream of events has no time-out: a script may be silent for long.
  request.socket.setTimeout(0);
  response.writeHead(200, { "content-type": String(found.row.gives) });
  response.flushHeaders();
  if (caller.visitor !== null) endWhenRevoked(response, context, credential);
  await reply.write(response);
}

/** Whose socket it is proves that everything is allowed. */
function operator(request: IncomingMessage): Caller {
  const name = printable(decoded(reported(request, "x-requested-by") ?? ""), 100).trim() || null;
  return { ...nobody, name };
}

/** Commands write a name as a URL does: a header has no letters but those of ASCII. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The name for the record is that of the credential, with what proves it; the rest is as the page reports it. */
function visitor(request: IncomingMessage, { access }: ServerContext, credential: string): Caller {
  const known = credential === "" ? null : findVisitor(access(), credential, Date.now());
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

const unknownCall = refuse(
  "not_found",
  "This Hotpush does not know this call. Are both of the same version? See /api/openapi.json.",
);
const tooLarge = refuse("payload_too_large", "A call takes a body of up to 16 KiB.");
const notSignedIn = refuse("not_signed_in", "Sign in: run hotpush open on the server, and follow the link.");

/** @returns why the caller may not; null if it may. What only an operator's socket has is not there for visitors. */
function authorize(
  { metricsNetworks }: ServerContext,
  { visitor: known, address }: Caller,
  found: FoundCall | null,
  isAnonymous: boolean,
): Refused | null {
  const right = found?.row.right;
  if (right === "front") return null;
  const mayScrape = isAnonymous && address !== null && isIn(metricsNetworks, address);
  if (right === "scraper" && mayScrape) return null;
  if (known === null) return notSignedIn;
  if (right === undefined || right === "server") return unknownCall;
  if (right !== "operator" || known.role === "operator") return null;
  return refuse(
    "not_allowed",
    `This takes an operator, or a token made with --deploy: ${known.name} may only look.`,
  );
}

async function answerCall(
  { readAsked, handlers }: Table,
  context: ServerContext,
  found: FoundCall,
  query: URLSearchParams,
  body: string,
  caller: Caller,
): Promise<object> {
  const read = readAsked(found, query, body);
  if ("code" in read) return refuse(read.code, read.detail);
  try {
    const handle = handlers[found.name] as Handle;
    return await handle(context, read.asked, caller);
  } catch (error) {
    if (error instanceof ProblemError) return refuse("not_possible", error.message);
    throw error;
  }
}

type Handle = (server: ServerContext, asked: object, caller: Caller) => object | Promise<object>;

function isStream(reply: object): reply is Stream {
  return "kind" in reply && reply.kind === "stream";
}

function send(response: ServerResponse, reply: object | Refused, status = 200): void {
  sendAnswer(
    response,
    isRefused(reply)
      ? problemAnswer({ ...reply, ...(reply.code === "payload_too_large" && { closing: "refused" }) })
      : jsonAnswer(status, reply),
  );
}

interface Noted {
  readonly caller: Caller;
  readonly found: FoundCall;
  readonly query: URLSearchParams;
  readonly reply: object;
  readonly status: number;
}

/** What visitors do, not what they see. The audit log must not keep anybody from acting: the health check reports a full disk. */
function noteInAudit({ access, log }: ServerContext, { caller, found, query, reply, status }: Noted): void {
  const { name: action, row, parameters } = found;
  const atMs = Date.now();
  const session = "session" in reply ? findVisitor(access(), String(reply.session), atMs) : null;
  const signedIn = session && `${session.name} (session ${session.id})`;
  const visitor = row.right === "operator" || action === "signOut" ? caller.name : signedIn;
  if (visitor === null) return;
  const { id, project: named = query.get("project") } = parameters;
  const deployment = id === undefined || id === "latest" ? null : Number(id);
  const project = named === "_" ? null : named;
  try {
    noteAction(access(), { atMs, visitor, action, project, deployment, address: caller.address, status });
  } catch (error) {
    log.error({ event: "store.failed", err: error }, "An action could not be written to the audit log");
  }
}

const recheckMs = 5_000;

/** A stream goes on for hours: it ends when the session that it was opened with is revoked. */
function endWhenRevoked(response: ServerResponse, { access }: ServerContext, credential: string): void {
  const check = async () => {
    if (findVisitor(access(), credential, Date.now()) === null) response.destroy();
  };
  const checking = repeat(check, { intervalMs: recheckMs, onFault: () => response.destroy() });
  checking.start();
  response.once("close", checking.stop);
}
