import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type HttpProblemCode, type Problem, problems } from "#problems";
import { STATUS_CODES } from "./http.ts";

/** How many bytes are still read of a request that was refused before it was whole, so that its sender reads why. */
const lingerBytes = { refused: 64 * 1024 ** 2, broken: 64 * 1024 } as const;
/** How long its sender has to read the answer. */
const lingerMs = 3_000;

/** Connections that end with an answer already given or decided on: nothing that still arrives on them is parsed. */
const closingSockets = new WeakSet<Socket>();

/** Why the connection is closed: the rest of the request is not worth reading, or cannot be read. */
type Closing = keyof typeof lingerBytes;

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

/** True if an earlier request of the same connection was refused in a way that closes it. */
export function isClosing(socket: Socket): boolean {
  return closingSockets.has(socket);
}

/** Writes `answer` on the bare socket and closes it. */
export function writeAndClose(socket: Socket, answer: Answer): void {
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
