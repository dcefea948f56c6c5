import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
} from "node:fs";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import {
  type BlockList,
  createServer as createSocketServer,
  isIP,
  type Socket,
  SocketAddress,
} from "node:net";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "#log";
import { type HttpProblemCode, type Problem, ProblemError, problems } from "#problems";
import { createLogThrottle } from "./async.ts";
import { ownUid } from "./files.ts";

const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");

/** Answers a request. Its promise settles when the handler has no more to do, or rejects with a fault. */
export type HandleRequest = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

const internalError: Refusal = {
  code: "internal_error",
  detail: "This is a fault in Hotpush. Its log has the reason.",
};
const diskFull: Refusal = {
  code: "unhealthy",
  detail: "The disk is full, so Hotpush cannot write its state. Free some space or inodes there.",
};

/** Also of SQLite, which has a number of its own for it. */
function isDiskFull(error: unknown): boolean {
  const { code = "", errcode } = Object(error) as { readonly code?: string; readonly errcode?: number };
  return ["ENOSPC", "EDQUOT"].includes(code) || errcode === 13;
}

/** Faults that are logged one by one in a minute: while a disk is full, every request may be one. */
const faultsPerMinute = 20;

/**
 * Makes an HTTP server; there is no other way. A fault that a handler throws is logged once and answered with 500. If the
 * answer has begun, its connection is cut. The process goes on.
 */
export function createHttpServer(options: ServerOptions, log: Log, handle: HandleRequest): Server {
  const mayLog = createLogThrottle<"fault">(faultsPerMinute, 60_000, (_, count) =>
    log.error({ event: "request.failed_more", count }, `${count} more requests failed because of a fault`),
  );

  function fail(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    // A client that leaves before its body is whole is no fault.
    if (request.errored !== null && error === request.errored) return;
    const isFull = isDiskFull(error);
    const reason = isFull ? "the disk is full" : "of a fault in Hotpush";
    if (mayLog("fault"))
      log.error({ event: "request.failed", err: error }, `A request failed because ${reason}`);
    if (response.headersSent || response.destroyed) response.destroy();
    else sendAnswer(response, problemAnswer(isFull ? diskFull : internalError));
  }

  return createServer(options, (request, response) => {
    // Without listeners, the error of a connection that breaks off would end the process.
    request.on("error", () => {});
    response.on("error", () => response.destroy());
    // After a refused request, nothing on its connection is read.
    if (closingSockets.has(request.socket)) return;
    Promise.try(handle, request, response)
      .catch((error: unknown) => fail(error, request, response))
      .catch(() => response.destroy());
  });
}

/** How many bytes are still read of a request that was refused before it was whole, so that its sender reads why. */
const lingerBytes = { refused: 64 * 1024 ** 2, broken: 64 * 1024 } as const;
/** How long its sender has to read the answer. */
const lingerMs = 3_000;

/** Connections that end with an answer already given or decided on: nothing that still arrives on them is parsed. */
const closingSockets = new WeakSet<Socket>();

/**
 * Sends `answer` as the response. If that closes the connection, earlier requests on it are answered first.
 *
 * @param isLast asks the client to open a new connection for its next request
 */
export function sendAnswer(response: ServerResponse, answer: Answer, isLast = false): void {
  const { status, headers, body } = answer;
  if (answer.closing === undefined) {
    response.writeHead(status, isLast ? [...headers, "Connection", "close"] : [...headers]).end(body);
    return;
  }
  closingSockets.add(response.req.socket);
  if (response.socket) writeAndClose(response.socket, answer);
  else response.once("socket", (socket) => writeAndClose(socket, answer));
}

/** Writes `answer` on the bare socket and closes it. */
function writeAndClose(socket: Socket, answer: Answer): void {
  closingSockets.add(socket);
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(onTheWire(answer));
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.on("close", () => clearTimeout(timer));
  const mostBytes = lingerBytes[answer.closing ?? "broken"];
  // Not now: Node's parser may still be working on the bytes that led here, and pause the socket on them.
  setImmediate(() => {
    if (!socket.isPaused()) return readAndDiscard(socket, mostBytes);
    // Node's own listener of "resume" restarts a paused socket, and is removed once somebody else reads.
    socket.once("resume", () => readAndDiscard(socket, mostBytes));
    socket.resume();
  });
}

/**
 * Reads for a moment what the sender still sends: closing on unread bytes resets the connection, and a sender that reads
 * only after it has sent everything would never see the answer.
 */
function readAndDiscard(socket: Socket, mostBytes: number): void {
  let remainingBytes = mostBytes;
  socket.removeAllListeners("data");
  socket.on("data", (chunk: Buffer) => {
    remainingBytes -= chunk.length;
    discard(chunk);
    if (remainingBytes < 0) socket.pause();
  });
}

function onTheWire({ status, headers, body }: Answer): string {
  const lines = headers.map((text, index) => (index % 2 === 0 ? `${text}: ` : `${text}\r\n`));
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}`;
  return `${head}Connection: close\r\n\r\n${body}`;
}

/**
 * Frees the memory of a chunk that nobody needs any more at once. The garbage collector would do so only after another
 * 64 MB or so have come in, which a flood of large bodies would then hold on top of everything else.
 */
export function discard({ buffer, length }: Buffer): void {
  // A chunk that shares its memory with others is left alone.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

/** Node drops headers beyond this many without an error; a request that reaches it is refused. */
export const maxHeaders = 100;

/** Checks for every path, on the headers alone: their number, the version, one Host, an unambiguous framing. */
export function checkHead(request: IncomingMessage): Refusal | null {
  const { rawHeaders, headers, httpVersion } = request;
  const closing = "refused";
  const code = "malformed_request";
  if (rawHeaders.length / 2 >= maxHeaders)
    return {
      code: "headers_too_large",
      detail: `The request has ${maxHeaders} header fields or more.`,
      closing,
    };
  if (httpVersion !== "1.1" && httpVersion !== "1.0")
    return { code, detail: `This service speaks HTTP/1.1, not HTTP/${httpVersion}.`, closing };
  // Not `headersDistinct`, which makes a list for each header of each request.
  const hostCount = rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === 4 && text.toLowerCase() === "host",
  ).length;
  if (hostCount > 1 || (hostCount === 0 && httpVersion === "1.1"))
    return { code, detail: `The request has ${hostCount} Host headers instead of one.`, closing };
  const coding = headers["transfer-encoding"];
  if (coding === undefined || (coding === "chunked" && httpVersion === "1.1")) return null;
  return { code, detail: "The only Transfer-Encoding accepted is chunked, on HTTP/1.1.", closing };
}

/** The Content-Length, which Node has checked to be a number, or 0. */
export function declaredBytes(request: IncomingMessage): number {
  return Number(request.headers["content-length"] ?? 0);
}

/**
 * Limits on what a connection may cost. They are given to the constructor, which refuses values that contradict each
 * other. They are checked every second: Node's default of 30 s would make each of them 30 s longer.
 */
const publicOptions: ServerOptions = {
  headersTimeout: 5_000,
  // GitHub and GitLab hang up after 10 s: what comes later is of no use to anybody.
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  // Longer than a proxy keeps an idle connection (Caddy: 2 min): else the two race, and a push is lost.
  keepAliveTimeout: 125_000,
  maxHeaderSize: 16_384,
  // Node would answer without a reason; checkHead does.
  requireHostHeader: false,
  // How many bytes of a body that waits for its turn may be in memory before it is no longer read.
  highWaterMark: 16_384,
  noDelay: true,
};

const idleSocketMs = 15_000;
/** Each costs some 15 KiB even if it sends nothing. */
export const mostConnections = 2_048;
/** Of the files that a process may open: the webhook and the page share them, so that no flood of one takes those of the other. */
const shares = { webhook: 5 / 8, page: 3 / 8 } as const;
/** File descriptors that are kept for the database, the log, the deploy script and other servers. */
const reservedDescriptors = 128;

/** Makes a server for requests of anybody: limits, a cap on connections, and answers to requests that Node cannot read. */
export function createPublicServer(
  port: keyof typeof shares,
  options: ServerOptions,
  log: Log,
  handle: HandleRequest,
): Server {
  const server = createHttpServer({ ...publicOptions, ...options }, log, handle);
  server.maxHeadersCount = maxHeaders;
  const available = Math.floor(shares[port] * (openFilesLimit() - reservedDescriptors));
  server.maxConnections = Math.max(64, Math.min(mostConnections, available));
  server.timeout = idleSocketMs;
  const latest = limitConnections(server);
  refusePipelining(server);
  answerBrokenRequests(server, latest);
  return server;
}

/**
 * Gives each connection one request at a time. No git host, browser or proxy sends the next request before it has the answer; anyone
 * who does could make the process work on thousands at once. The first one is answered, and then the connection is closed.
 */
function refusePipelining(server: Server): void {
  const answering = new WeakMap<Socket, ServerResponse>();
  server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    const before = answering.get(socket);
    if (before === undefined || before.writableFinished) {
      answering.set(socket, response);
      return;
    }
    if (closingSockets.has(socket)) return;
    closingSockets.add(socket);
    before.once("close", () => socket.destroySoon());
  });
}

/** How many files this process may have open; Node raises its soft limit to the hard one at start. */
function openFilesLimit(): number {
  const line = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  return Number(line?.[1] ?? mostConnections);
}

/** This share of the connections is kept free for new ones, and 16 at least. */
const freeShare = 1 / 8;
const leastFree = 16;
/** How many connections are looked at when a new one comes: it must not cost more if thousands are busy. */
const mostLooks = 64;

/**
 * Closes a connection for each new one when `server` comes near its limit; else anybody who keeps enough of them open locks
 * out every delivery. Of those without news for longest, the first without a request is closed, else the first whose body has
 * not come whole, or whose answers nobody reads. A request that has come whole is not cut before its answer.
 *
 * @returns the latest response of each connection, whose request's head has arrived whole; earlier ones are answered before it
 */
function limitConnections(server: Server): WeakMap<Socket, ServerResponse<IncomingMessage>> {
  const latest = new WeakMap<Socket, ServerResponse<IncomingMessage>>();
  /** Those without news for longest first. */
  const open = new Set<Socket>();
  const moveToEnd = (socket: Socket) => open.delete(socket) && open.add(socket);
  const isIdle = (socket: Socket) => latest.get(socket)?.writableFinished ?? true;
  const isHeldUp = (socket: Socket) =>
    closingSockets.has(socket) || socket.writableLength > 0 || !latest.get(socket)?.req.complete;
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    const { maxConnections } = server;
    const most = maxConnections - Math.max(leastFree, Math.floor(maxConnections * freeShare));
    if (open.size <= most) return;
    // Not the newer half: the new one has no request yet either.
    const oldest = [...open.values().take(Math.min(mostLooks, most / 2))];
    (oldest.find(isIdle) ?? oldest.find(isHeldUp))?.destroy();
    // What works on an answer, maybe for hours, must not hide the others.
    for (const one of oldest) if (!isIdle(one) && !isHeldUp(one)) moveToEnd(one);
  });
  server.prependListener("request", ({ socket }: IncomingMessage, response: ServerResponse) => {
    latest.set(socket, response);
    moveToEnd(socket);
    response.once("close", () => latest.get(socket) === response && moveToEnd(socket));
  });
  return latest;
}

/**
 * Answers requests that Node's parser gave up on: broken, too large or too slow. Node has no response for them; but the
 * requests that came whole before them on the same connection are answered first, or a sender would take the refusal for
 * the answer to a push that was recorded.
 */
function answerBrokenRequests(server: Server, latest: ReturnType<typeof limitConnections>): void {
  const broken = new WeakSet<Socket>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    // Everything after a broken request is broken too, and reported again.
    if (broken.has(socket)) return;
    broken.add(socket);
    const [code, detail] = brokenRequests[error.code ?? ""] ?? notHttp;
    const answer = problemAnswer({ code, detail, closing: "broken" });
    const response = latest.get(socket);
    const isWhole = response?.req.complete;
    if (!response || (isWhole && response.writableFinished)) writeAndClose(socket, answer);
    else if (isWhole) response.once("close", () => writeAndClose(socket, answer));
    else if (response.writableEnded) socket.destroySoon();
    else sendAnswer(response, answer);
  });
}

/** By the code of Node's parser. */
const brokenRequests: Readonly<Record<string, readonly [HttpProblemCode, string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [
    "request_timeout",
    "The headers did not arrive within 5 s, or the body within 10 s.",
  ],
  HPE_HEADER_OVERFLOW: [
    "headers_too_large",
    `The headers are larger than 16 KiB, or there are ${maxHeaders} or more.`,
  ],
};
const notHttp = ["malformed_request", "The request could not be read as HTTP/1.1."] as const;

/** Reads the body of a request as text. @returns null if it has more than `mostBytes` */
export async function readText(request: IncomingMessage, mostBytes: number): Promise<string | null> {
  // One buffer, because a body can be sent in pieces of one byte, and each would take some hundred.
  const body = Buffer.alloc(mostBytes);
  let bytes = 0;
  // A sender of too much still reads why it is refused.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if (bytes + chunk.length > mostBytes) return null;
    bytes += chunk.copy(body, bytes);
  }
  return body.toString("utf8", 0, bytes);
}

/**
 * Finds the client behind the `trusted` proxies. X-Forwarded-For is read from the right, the end that the nearest proxy
 * wrote, and only as long as its writer is trusted: a client can send any value, to which proxies append. An entry that
 * is not an address ends the search at its writer.
 *
 * @returns an IP address in its usual form; null if the connection is gone
 */
export function clientAddress({ socket, headers }: IncomingMessage, trusted: BlockList): string | null {
  let client = canonicalAddress(socket.remoteAddress ?? "");
  const forwarded = headers["x-forwarded-for"];
  if (client === null || forwarded === undefined) return client;
  for (const entry of String(forwarded).split(",").reverse()) {
    if (!isIn(trusted, client)) return client;
    const previous = canonicalAddress(withoutPort(entry.trim()));
    if (previous === null) return client;
    client = previous;
  }
  return client;
}

/** Whether `address`, in its usual form, is one of a list. */
export function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

/** Some proxies add the port: `203.0.113.7:4711`, `[2001:db8::7]:4711`. */
function withoutPort(entry: string): string {
  const { bracketed, plain } =
    /^(?:\[(?<bracketed>[^\]]*)\]|(?<plain>[\d.]+))(?::\d{1,5})?$/.exec(entry)?.groups ?? {};
  return bracketed ?? plain ?? entry;
}

/** One text for each address: IPv6 in short form, without a zone, and IPv4 that is mapped into it as IPv4. */
function canonicalAddress(text: string): string | null {
  const [address = ""] = text.split("%", 1);
  const version = isIP(address);
  if (version !== 6) return version === 4 ? address : null;
  return new SocketAddress({ address, family: "ipv6" }).address.replace(/^::ffff:(?=\d+\.)/, "");
}

/** Why the connection is closed: the rest of the request is not worth reading, or cannot be read. */
type Closing = "refused" | "broken";

/** An answer ready to be sent: the body is text already. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn, as Node writes them without looking at each. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Set if the connection is closed after it. */
  readonly closing?: Closing | undefined;
}

/** Why a request is refused. */
export interface Refusal extends Problem<HttpProblemCode> {
  /** The field of the body that is wrong, as a slash path from its root. */
  readonly pointer?: string;
  /** Further headers, names and values in turn. */
  readonly headers?: readonly string[];
  readonly closing?: Closing;
  /** What only the log says. */
  readonly logReason?: string;
}

const common = ["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"] as const;
const jsonHeaders = ["Content-Type", "application/json; charset=utf-8", ...common];
const problemHeaders = ["Content-Type", "application/problem+json; charset=utf-8", ...common];

const challenge = ["WWW-Authenticate", 'HMAC-SHA256 realm="webhook"'];
const later = ["Retry-After", "30"];

/** Headers that go with a status: RFC 9110 requires a challenge with 401, and defines how to name what is accepted. */
const extraHeaders: Partial<Record<HttpProblemCode, readonly string[]>> = {
  signature_missing: challenge,
  signature_invalid: challenge,
  signature_unsupported: challenge,
  unsupported_media_type: ["Accept", "application/json"],
  unsupported_encoding: ["Accept-Encoding", "identity"],
  storage_unavailable: later,
  overloaded: later,
};

export function jsonAnswer(status: number, value: object, headers: readonly string[] = jsonHeaders): Answer {
  const body = JSON.stringify(value);
  return { status, headers: [...headers, "Content-Length", String(Buffer.byteLength(body))], body };
}

/** A refusal as RFC 9457 defines it. Git hosts show the body on the page of the delivery, so `detail` is the help text. */
export function problemAnswer({ code, detail, pointer, headers = [], closing }: Refusal): Answer {
  const { status, title } = problems[code];
  const instance = `urn:uuid:${randomUUID()}`;
  const body = { type: `urn:hotpush:problem:${code}`, title, status, detail, instance, code, pointer };
  const allHeaders = [...problemHeaders, ...(extraHeaders[code] ?? []), ...headers];
  return { ...jsonAnswer(status, body, allHeaders), closing };
}

/**
 * Starts to listen.
 *
 * @param portVariable sets the port
 * @throws ProblemError `address_unavailable` if the address cannot be used, with what to set instead
 */
export async function listen(
  server: Server,
  { host, port }: { readonly host: string; readonly port: number },
  portVariable: "WEBHOOK_PORT" | "PAGE_PORT",
): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, "listening");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    const isPort = ["EADDRINUSE", "EACCES"].includes(code);
    const advice = isPort
      ? `${portVariable} to a free port above 1023`
      : "WEBHOOK_HOST to an address of this machine";
    const detail = `The service cannot listen on ${host}:${port} (${code}). Set ${advice}.`;
    throw new ProblemError({ code: "address_unavailable", detail }, error);
  }
}

/** A turn of the event loop that takes longer had something to do: others may have connected meanwhile. */
const quietTurnMs = 0.5;
const longestWaitMs = 500;

/**
 * Stops listening and gives open requests `lastAnswersMs` to be answered.
 *
 * When a listening socket is closed, the kernel resets the connections that it has taken and that nobody has accepted
 * yet, and git hosts do not retry. A turn of the event loop accepts one at most. So the socket is closed at the end of a
 * short turn that had none to accept, or after half a second without such a turn.
 */
export async function closeServer(server: Server, lastAnswersMs: number): Promise<void> {
  await quietTurn(server);
  const closed = new Promise((resolve) => server.close(resolve));
  await Promise.race([closed, sleep(lastAnswersMs, null, { ref: false })]);
  server.closeAllConnections();
  await closed;
}

async function quietTurn(server: Server): Promise<void> {
  const startMs = performance.now();
  let isQuiet = false;
  server.on("connection", () => {
    isQuiet = false;
  });
  for (let turnMs = startMs; ; turnMs = performance.now()) {
    await new Promise(setImmediate);
    const nowMs = performance.now();
    if ((isQuiet && nowMs - turnMs < quietTurnMs) || nowMs - startMs > longestWaitMs) return;
    isQuiet = true;
  }
}

export type UnixSocket = { readonly close: () => void };

/**
 * Listens on a Unix socket at `path` and replaces one that is there: the caller makes sure that it was left by a process
 * that is gone.
 *
 * The socket is made in a directory that nobody else can enter, and moved to its place once its mode is right. So there is
 * no moment at which somebody else could connect, nor one without a socket.
 *
 * @param options.mode who may connect
 * @param options.isOfGroup gives the socket to the group of its directory, which must be closed to changes by others
 * @param onConnection called with a paused socket, whose errors are handled
 * @returns `close` closes all connections, and removes the socket unless another process has put its own in its place
 * @throws Error if the socket cannot be made
 */
export async function listenOnSocket(
  path: string,
  options: { readonly mode: number; readonly mostConnections: number; readonly isOfGroup?: boolean },
  onConnection: (socket: Socket) => void,
): Promise<UnixSocket> {
  const sockets = new Set<Socket>();
  const server = createSocketServer({ pauseOnConnect: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = options.mostConnections;
  // A failed accept costs that connection and nothing else.
  server.on("error", () => {});
  const group = options.isOfGroup ? groupOf(dirname(path)) : null;
  const unfinished = join(dirname(path), `.${basename(path)}`);
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { mode: 0o700 });
  // Kept open until close: Node then unlinks the path that it bound, which must still lead to this directory. The address of
  // a Unix socket holds 107 bytes (unix(7)), and this one is always shorter.
  const directory = openSync(unfinished, constants.O_RDONLY | constants.O_DIRECTORY);
  const made = `/proc/self/fd/${directory}/socket`;
  try {
    server.listen(made);
    await once(server, "listening");
    chmodSync(made, options.mode);
    if (group !== null) chownSync(made, ownUid(), group);
    renameSync(join(unfinished, "socket"), path);
    rmdirSync(unfinished);
  } catch (error) {
    server.close();
    closeSync(directory);
    throw error;
  }
  const own = identity(path);
  return {
    close() {
      server.close(() => closeSync(directory));
      for (const socket of sockets) socket.destroy();
      if (own !== null && identity(path) === own) rmSync(path, { force: true });
    },
  };
}

/** Anyone who can change the directory, or one around it, could swap the socket before it is given to the group. */
function groupOf(directory: string): number {
  const { uid, gid, mode } = statSync(directory);
  if (uid !== ownUid() || (mode & 0o022) !== 0)
    throw new Error(
      `${directory} can be changed by other users. Run: chown ${ownUid()} ${directory} && chmod u=rwx,g=rx,o= ${directory}`,
    );
  for (const path of [resolve(directory), realpathSync(directory)]) requireOwnAncestors(path);
  return gid;
}

/** @throws Error if a directory or link on the way belongs to another user than root and this one, or others can write to it */
function requireOwnAncestors(path: string): void {
  const stats = lstatSync(path);
  const { uid, gid, mode } = stats;
  const isOpenToGroup = (mode & 0o020) !== 0 && ![0, process.getgid?.()].includes(gid);
  const isOpen = isOpenToGroup || (mode & 0o002) !== 0;
  const isSticky = (mode & 0o1000) !== 0;
  const isForeign = ![0, ownUid()].includes(uid);
  if (isForeign || (isOpen && !isSticky && !stats.isSymbolicLink())) {
    const remedy = isForeign ? "Give it to root" : `Run: chmod go-w ${path}`;
    throw new Error(
      `${path}, which leads to the socket, can be changed by other users. ${remedy}, or choose another STATE_PATH.`,
    );
  }
  if (dirname(path) !== path) requireOwnAncestors(dirname(path));
}

/** Device and inode of the file at `path`, or null if there is none. */
function identity(path: string): string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats ? `${stats.dev}:${stats.ino}` : null;
}
