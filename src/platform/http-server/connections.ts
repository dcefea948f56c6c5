import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { isClosing } from "./answer.ts";

/** What happened to connections near the limit, since it was last reported. */
export interface Crowding {
  readonly limit: number;
  readonly closed: number;
  /** Came when the limit was reached and nothing could be closed. */
  readonly refused: number;
}

/** A request whose head has arrived whole, and the response to it. */
export interface LatestRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** This share of the connections is kept free for new ones, and 16 at least. */
const freeShare = 1 / 8;
const leastFree = 16;
/** How many connections are looked at when a new one comes: it must not cost more if thousands are busy. */
const mostLooks = 64;
/** A connection that has sent less since it was last looked at makes no progress. */
const progressBytes = 256;
const reportEveryMs = 60_000;

/**
 * Closes connections that are of no use when `server` comes near its limit; else anybody who keeps enough of them open
 * locks out every delivery. The idle ones are closed first, oldest first, then those that have sent no request yet, and
 * last those whose request has stopped arriving. A request that is arriving or being answered is never cut.
 *
 * @returns the latest request of a connection, undefined if it has sent none yet; earlier ones are answered before it
 */
export function limitConnections(server: Server, report: (crowding: Crowding) => void) {
  const limit = server.maxConnections;
  const most = limit - Math.max(leastFree, Math.floor(limit * freeShare));
  /** The one that was looked at longest ago comes first; `seenBytes` is what it had sent then. */
  const connections = new Map<Socket, { seenBytes: number; latest?: LatestRequest }>();
  const count = createCounter(limit, report);

  server.on("connection", (socket: Socket) => {
    connections.set(socket, { seenBytes: 0 });
    socket.once("close", () => connections.delete(socket));
    if (connections.size > most) closeOne();
  });
  server.on("drop", () => count("refused"));
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, note);
  return (socket: Socket) => connections.get(socket)?.latest;

  function note(request: IncomingMessage, response: ServerResponse): void {
    const connection = connections.get(request.socket);
    if (connection) connection.latest = { request, response };
  }

  function closeOne(): void {
    const socket = findUseless();
    if (!socket) return;
    socket.destroy();
    count("closed");
  }

  /** Those that do something are moved to the end of the line, after the one that has just come. */
  function findUseless(): Socket | null {
    const firstOf = new Map<State, Socket>();
    let looks = Math.min(mostLooks, connections.size - 1);
    for (const [socket, connection] of connections) {
      if (looks === 0) break;
      looks -= 1;
      const state = stateOf(socket, connection.latest);
      if (state === "ours" || socket.bytesRead - connection.seenBytes >= progressBytes) {
        connection.seenBytes = socket.bytesRead;
        connections.delete(socket);
        connections.set(socket, connection);
      } else if (!firstOf.has(state)) firstOf.set(state, socket);
      if (firstOf.has("idle")) break;
    }
    return firstOf.get("idle") ?? firstOf.get("silent") ?? firstOf.get("stalled") ?? null;
  }
}

/** True if the request has come whole and its answer is with the kernel. */
export function isAnswered({ request, response }: LatestRequest): boolean {
  return request.complete && response.writableFinished;
}

/** What a connection without progress waits for: another request, the head of its first one, a body, or our answer. */
type State = "idle" | "silent" | "stalled" | "ours";

function stateOf(socket: Socket, latest: LatestRequest | undefined): State {
  if (!latest) return "silent";
  if (isClosing(socket) || isAnswered(latest)) return "idle";
  const { request, response } = latest;
  if (response.writableEnded) return "stalled";
  return request.complete || request.isPaused() ? "ours" : "stalled";
}

/** Reports the first of its kind at once, and those in the minute after it together. */
function createCounter(limit: number, report: (crowding: Crowding) => void) {
  let counts = { closed: 0, refused: 0 };
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  return (kind: keyof typeof counts): void => {
    counts[kind] += 1;
    if (performance.now() - reportedAtMs < reportEveryMs) return;
    reportedAtMs = performance.now();
    report({ limit, ...counts });
    counts = { closed: 0, refused: 0 };
  };
}
