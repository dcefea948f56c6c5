import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { STATUS_CODES } from "../platform/http-server.ts";
import { type HttpProblemCode, type Problem, problems } from "../problems.ts";
import { discard } from "./discard.ts";

/** An answer ready to be sent: the body is text already. */
export interface Answer {
  readonly status: number;
  /** Names and values in turn, as Node writes them without looking at each. */
  readonly headers: readonly string[];
  readonly body: string;
}

const common = ["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"] as const;
const jsonHeaders = ["Content-Type", "application/json; charset=utf-8", ...common];
const problemHeaders = ["Content-Type", "application/problem+json; charset=utf-8", ...common];

const challenge = ["WWW-Authenticate", 'HMAC-SHA256 realm="webhook"'];
const later = ["Retry-After", "30"];

/** What a status asks for beside the body: RFC 9110 wants a challenge with 401 and says how to name what is taken. */
const extraHeaders: Partial<Record<HttpProblemCode, readonly string[]>> = {
  signature_missing: challenge,
  signature_invalid: challenge,
  signature_unsupported: challenge,
  unsupported_media_type: ["Accept", "application/json"],
  unsupported_encoding: ["Accept-Encoding", "identity"],
  storage_unavailable: later,
  overloaded: later,
};

export function jsonAnswer(status: number, value: object): Answer {
  return answerOf(status, jsonHeaders, JSON.stringify(value));
}

/**
 * A problem as RFC 9457 has it. Git hosts show the body on the page of the delivery, so `detail` is the help text.
 *
 * @param members further members, such as the limit that was passed
 * @param headers further headers, names and values in turn
 */
export function problemAnswer(
  problem: Problem<HttpProblemCode>,
  members: Readonly<Record<string, string | number>> = {},
  headers: readonly string[] = [],
): Answer {
  const { code, detail } = problem;
  const { status, title } = problems[code];
  const instance = `urn:uuid:${randomUUID()}`;
  const body = { type: `urn:hotpush:problem:${code}`, title, status, detail, instance, code, ...members };
  const extra = extraHeaders[code] ?? [];
  return answerOf(status, [...problemHeaders, ...extra, ...headers], JSON.stringify(body));
}

function answerOf(status: number, headers: readonly string[], body: string): Answer {
  return { status, headers: [...headers, "Content-Length", String(Buffer.byteLength(body))], body };
}

/** Sends `answer` as the response. */
export function sendAnswer(response: ServerResponse, { status, headers, body }: Answer): void {
  response.writeHead(status, headers as string[]).end(body);
}

/** How long a sender that was refused before its request was whole has to read the answer. */
const lingerMs = 3_000;
/** How much is still read from it meanwhile: a body that is too large to its end, of anything else next to nothing. */
const lingerBytes = { refused: 64 * 1024 ** 2, broken: 64 * 1024 } as const;

type Refusal = keyof typeof lingerBytes;

/** Connections that end with an answer already given or decided on: what still comes on them is not looked at. */
const closing = new WeakSet<Socket>();

/** True where an earlier request of the same connection was refused in a way that closes it. */
export function isClosing(socket: Socket): boolean {
  return closing.has(socket);
}

/**
 * Answers a request that is not worth reading to its end, and closes the connection; what was asked before it on the
 * same connection is answered first.
 */
export function answerAndClose(response: ServerResponse, answer: Answer, kind: Refusal = "refused"): void {
  closing.add(response.req.socket);
  if (response.socket) writeAndClose(response.socket, answer, kind);
  else response.once("socket", (socket) => writeAndClose(socket, answer, kind));
}

/** Writes `answer` on the bare socket and closes it. */
export function writeAndClose(socket: Socket, answer: Answer, kind: Refusal): void {
  closing.add(socket);
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(onTheWire(answer));
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.on("close", () => clearTimeout(timer));
  // Not now: Node's parser may still be at work on the bytes that brought us here, and pause the socket on them.
  setImmediate(() => {
    if (!socket.isPaused()) return readAndDiscard(socket, lingerBytes[kind]);
    // Its listener of "resume" goes away once somebody else reads, and is what sets a paused socket going.
    socket.once("resume", () => readAndDiscard(socket, lingerBytes[kind]));
    socket.resume();
  });
}

/**
 * Reads what the sender is still sending for a moment, since closing on unread bytes resets the connection, and a
 * sender that reads only when it has sent all would never see the answer.
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
