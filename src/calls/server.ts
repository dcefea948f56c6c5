import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { createRefusalCounter, type NoteRefusal, noteAction } from "#access/audit";
import { findAnswer, keepAnswer } from "#access/repeats";
import { findVisitor } from "#access/visitor";
import { repeat } from "#platform/async";
import { jsonAnswer, problemAnswer, sendAnswer } from "#platform/http-answer";
import { createHttpServer, isIn, readText } from "#platform/http-server";
import { listenOnSocket, type UnixSocket } from "#platform/listen";
import { printable } from "#platform/terminal";
import { ProblemError, problems } from "#problems";
import {
  type Caller,
  type Refused,
  type Right,
  refuse,
  reportedName,
  type ServerContext,
  type Stream,
} from "./call.ts";
import type { FoundCall } from "./table.ts";

/** Over the operator's socket everything is allowed; over the page's, each call carries the credential of a visitor. */
type Door = "operator" | "page";

/** A person has a terminal or two; more at once is a mistake, and must not cost the receiver its descriptors. */
const mostCommands = 32;
/** The page bounds those of each visitor (page/run-client.ts). */
const mostPageCalls = 512;

/**
 * Opens one of `run`'s sockets. Only the holder of the runner lock calls this, so a socket that is there was left by a service
 * that is gone. The operator's may be used by root and the service's user alone, the page's by the group of its directory,
 * because the page is a process of another user. The table of calls is loaded at the first connection: most services never
 * get one.
 *
 * @returns null if it could not be made: then the service runs without it
 */
export async function openSocket(
  server: ServerContext,
  door: Door,
  path: string,
): Promise<UnixSocket | null> {
  const { log, pageUrl, taking } = server;
  let opened: Promise<Server> | null = null;
  const serve = async (socket: Socket) => {
    opened ??= createCallServer(server, door);
    (await opened).emit("connection", socket);
    socket.resume();
  };
  const options =
    door === "operator"
      ? { mode: 0o600, mostConnections: mostCommands }
      : { mode: 0o660, mostConnections: mostPageCalls, isOfGroup: true };
  try {
    return await listenOnSocket(path, options, (socket) => {
      serve(socket).catch((error: unknown) => {
        log.error({ event: "control.failed", err: error }, "A command could not be answered");
        socket.destroy();
      });
    });
  } catch (error) {
    const consequence = door === "operator" ? "Commands such as hotpush status" : "Calls of hotpush front";
    const isMissed = door === "operator" || (taking ?? pageUrl) !== null;
    const text = `${consequence} cannot be answered: ${path} cannot be created`;
    log[isMissed ? "error" : "debug"]({ event: "control.unavailable", err: error }, text);
    return null;
  }
}

/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;

/** HTTP/1.1 and JSON, one request per connection. */
export async function createCallServer(context: ServerContext, door: Door): Promise<Server> {
  const { findCall, readAsked } = await import("./table.ts");
  const note = createNotes(context);
  const answered: Answering = { context, door, findCall, readAsked, note, running: new Set() };
  const options = { maxHeaderSize: 16_384, requireHostHeader: false };
  const server = createHttpServer(options, context.log, async (request, response) => {
    response.setHeader("connection", "close");
    await answerRequest(answered, request, response);
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

interface Answering extends Pick<typeof import("./table.ts"), "findCall" | "readAsked"> {
  readonly context: ServerContext;
  readonly door: Door;
  readonly note: Note;
  /** Requests with a key that are being answered. */
  readonly running: Set<string>;
}

/** The credential comes first: nothing of the request is read for somebody without one, but a link that signs in. */
async function answerRequest(
  answering: Answering,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { context, door, findCall, readAsked, note } = answering;
  const { method = "", url = "", headers } = request;
  const [path = ""] = url.split("?", 1);
  const query = new URLSearchParams(url.slice(path.length + 1));
  if (door === "page" && method === "POST" && path.startsWith("/front/")) {
    const text = await readText(request, longestBodyBytes);
    const answered = text === null ? null : await context.answerFront(url, text);
    return send(response, answered ?? refuse("not_found", "Hotpush run does not know this call of front."));
  }
  const credential = /^Bearer (\S{1,100})$/.exec(headers.authorization ?? "")?.[1] ?? "";
  const caller = door === "operator" ? operator(request) : visitor(request, context, credential);
  const found = findCall(method, path);
  const refused = door === "operator" ? null : authorize(context, caller, found, credential === "");
  const action = found?.row.right === "operator" || found?.name === "signOut" ? found.name : null;
  if (refused !== null || found === null) {
    if (action !== null && found !== null && refused?.code === "not_allowed")
      note({ caller, action, found, query, status: 403 });
    return send(response, refused ?? unknownCall);
  }
  const body = method === "POST" ? await readText(request, longestBodyBytes) : "";
  if (body === null) return send(response, tooLarge);
  const read = readAsked(found, query, body);
  const reply =
    "code" in read
      ? refuse(read.code, read.detail)
      : action === null || door === "operator"
        ? await handle(answering, found, read.asked, caller)
        : await handleOnce(answering, request, found, read.asked, caller);
  const doneStatus = isRefused(reply) ? problems[reply.code].status : (found.row.status ?? 200);
  if (found.name === "signIn")
    note({ caller: signedIn(context, reply, caller), action: "sign in", found, query, status: doneStatus });
  else if (action !== null && door === "page") note({ caller, action, found, query, status: doneStatus });
  if (!isStream(reply)) return send(response, reply, doneStatus);
  // A stream of events has no time-out: a script may be silent for long.
  request.socket.setTimeout(0);
  response.writeHead(200, { "content-type": reply.type ?? String(found.row.gives) });
  response.flushHeaders();
  if (door === "page" && caller.visitor !== null) endWhenRevoked(response, context, credential);
  await reply.write(response);
}

function isStream(reply: object): reply is Stream {
  return "kind" in reply && reply.kind === "stream";
}

const unknownCall = refuse(
  "not_found",
  "This Hotpush does not know this call. Are both of the same version? See /api/openapi.json.",
);
const tooLarge = refuse("payload_too_large", "A call takes a body of up to 16 KiB.");
const notSignedIn = refuse("not_signed_in", "Sign in: run hotpush open on the server, and follow the link.");

function send(response: ServerResponse, reply: object | Refused, status = 200): void {
  sendAnswer(
    response,
    isRefused(reply)
      ? problemAnswer({ ...reply, ...(reply.code === "payload_too_large" && { closing: "refused" }) })
      : jsonAnswer(status, reply),
  );
}

function isRefused(reply: object): reply is Refused {
  return "kind" in reply && reply.kind === "refused";
}

/** Whose socket it is proves that everything is allowed. */
function operator(request: IncomingMessage): Caller {
  const name = reportedName(decoded(reported(request, "x-requested-by") ?? ""));
  return { visitor: null, name, address: null, agent: null };
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

/** @returns why the caller may not; null if it may. What only an operator's socket has is not there for visitors. */
function authorize(
  { metricsNetworks }: ServerContext,
  { visitor: known, address }: Caller,
  found: FoundCall | null,
  isAnonymous: boolean,
): Refused | null {
  const right: Right | undefined = found?.row.right;
  if (right === "nobody") return null;
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

const longestBodyBytes = 16 * 1024;

async function handle(
  { context }: Answering,
  { row }: FoundCall,
  asked: Readonly<Record<string, unknown>>,
  caller: Caller,
): Promise<object> {
  try {
    return (await row.handle(context, asked, caller)) as object;
  } catch (error) {
    if (error instanceof ProblemError) return refuse("not_possible", error.message);
    throw error;
  }
}

/** A request with a key that was answered before gets that answer again, and does nothing. */
async function handleOnce(
  answering: Answering,
  request: IncomingMessage,
  found: FoundCall,
  asked: Readonly<Record<string, unknown>>,
  caller: Caller,
): Promise<object> {
  const { context, running } = answering;
  const [who, key] = [caller.name ?? "", reported(request, "idempotency-key")];
  if (key === null) return await handle(answering, found, asked, caller);
  const wanted = `${found.name} ${JSON.stringify(asked)}`;
  const known = findAnswer(context.access(), who, key, Date.now());
  if (known !== null && known.request !== wanted)
    return refuse(
      "key_reused",
      "This Idempotency-Key was used for another request. Use a new key for each request.",
    );
  if (known !== null) return known.value;
  const name = `${who} ${key}`;
  if (running.has(name))
    return refuse("not_possible", "A request with this Idempotency-Key is being answered.");
  running.add(name);
  try {
    const value = await handle(answering, found, asked, caller);
    const kept = { visitor: who, key, request: wanted, status: found.row.status ?? 200, value };
    // What was done must be answered as done: a caller who gets a fault would do it again.
    if (!("kind" in value)) unlessFull(context, () => keepAnswer(context.access(), kept, Date.now()));
    return value;
  } finally {
    running.delete(name);
  }
}

/** Who has signed in is on record by the name of the new session. */
function signedIn({ access }: ServerContext, reply: object, caller: Caller): Caller {
  const session = "session" in reply ? findVisitor(access(), String(reply.session), Date.now()) : null;
  return session === null ? caller : { ...caller, name: `${session.name} (session ${session.id})` };
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

interface Noted {
  readonly caller: Caller;
  readonly action: string;
  readonly found: FoundCall;
  readonly query: URLSearchParams;
  readonly status: number;
}

type Note = (noted: Noted) => void;

/** The audit log must not keep anybody from acting: a full disk is reported by the health check. */
function createNotes(context: ServerContext): Note {
  const { access, log } = context;
  const noteRefusal: NoteRefusal = createRefusalCounter(access, (error) => logUnwritten(log, error));
  return ({ caller, action, found, query, status }) => {
    const [visitor, atMs, { address }] = [caller.name ?? "nobody", Date.now(), caller];
    if (status === 401 || status === 403) {
      noteRefusal({ visitor, action, address, lastAtMs: atMs });
      return;
    }
    const { id, project: named = query.get("project") } = found.parameters;
    const deployment = id === undefined || id === "latest" ? null : Number(id);
    const project = named === "_" ? null : named;
    unlessFull(context, () =>
      noteAction(access(), { atMs, visitor, action, project, deployment, address, status }),
    );
  };
}

function unlessFull({ log }: ServerContext, write: () => void): void {
  try {
    write();
  } catch (error) {
    logUnwritten(log, error);
  }
}

function logUnwritten(log: ServerContext["log"], error: unknown): void {
  log.error({ event: "store.failed", err: error }, "An action could not be written to the audit log");
}

const longestReported = 2_000;

/** What the other side says of the person; nothing proves it. */
function reported({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return typeof value === "string" ? printable(value, longestReported).trim() || null : null;
}
