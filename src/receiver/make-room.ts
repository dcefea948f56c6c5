import type { Server } from "node:http";
import type { Socket } from "node:net";
import { isClosing } from "./answer.ts";
import { isAnswered, type LatestRequest } from "./latest-request.ts";

/** What became of connections near the limit, since it was last reported. */
export interface Crowding {
  readonly limit: number;
  readonly closed: number;
  /** Came when the limit was reached and nothing could be closed. */
  readonly refused: number;
}

export interface MakeRoomOptions {
  readonly latestOf: (socket: Socket) => LatestRequest | undefined;
  readonly report: (crowding: Crowding) => void;
}

/** This share of the connections is kept free for those that come, and 16 at least. */
const freeShare = 1 / 8;
const leastFree = 16;
/** How many connections one that comes makes us look at: it must not cost more where thousands are busy. */
const mostLooks = 64;
/** A connection that has sent less since it was last looked at makes no progress. */
const progressBytes = 256;
const reportEveryMs = 60_000;

/**
 * Closes connections of which nothing is to be expected when `server` comes near its limit, or whoever keeps enough of
 * them open locks out every delivery. The idle ones go first, oldest first; then those that have sent no request yet; and
 * only then requests that have stopped arriving. A request that is arriving or being answered is never cut.
 */
export function makeRoom(server: Server, { latestOf, report }: MakeRoomOptions): void {
  const limit = server.maxConnections;
  const most = limit - Math.max(leastFree, Math.floor(limit * freeShare));
  /** With the bytes that each had sent when it was looked at; the one that was looked at longest ago comes first. */
  const connections = new Map<Socket, number>();
  const count = createCounter(limit, report);

  server.on("connection", (socket: Socket) => {
    connections.set(socket, 0);
    socket.once("close", () => connections.delete(socket));
    if (connections.size > most) closeOne();
  });
  server.on("drop", () => count("refused"));

  function closeOne(): void {
    const socket = findUseless();
    if (!socket) return;
    socket.destroy();
    count("closed");
  }

  /** Those that do something are put back in the line, behind the one that has just come. */
  function findUseless(): Socket | null {
    const firstOf = new Map<State, Socket>();
    let looks = Math.min(mostLooks, connections.size - 1);
    for (const [socket, seenBytes] of connections) {
      if (looks === 0) break;
      looks -= 1;
      const state = stateOf(socket, latestOf(socket));
      if (state === "ours" || socket.bytesRead - seenBytes >= progressBytes) {
        connections.delete(socket);
        connections.set(socket, socket.bytesRead);
      } else if (!firstOf.has(state)) firstOf.set(state, socket);
      if (firstOf.has("idle")) break;
    }
    return firstOf.get("idle") ?? firstOf.get("silent") ?? firstOf.get("stalled") ?? null;
  }
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

/** Reports the first of its kind at once, and what comes in the minute after it together. */
function createCounter(limit: number, report: MakeRoomOptions["report"]) {
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
