import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "../log.ts";
import { createHttpServer } from "../platform/http-server/server.ts";
import { listenOnSocket, type UnixSocket } from "../platform/unix-socket.ts";
import type { Inbox } from "./inbox.ts";
import { type TakeRequest, takeWaitMs, unsyncedWaitMs } from "./offer.ts";

/** One request is under way, and the next one may come before the connection of the last is closed. */
const mostConnections = 8;
const longestRequestBytes = 1024 * 1024;

/**
 * Offers what is in the inbox on a Unix socket: `POST /take` settles what was taken before and gives what waits, and
 * `GET /waiting` counts. Only the owner and the group of the socket may connect: a client can take pushes away.
 *
 * @throws Error if the socket cannot be made
 */
export async function serveInbox(inbox: Inbox, path: string, log: Log): Promise<UnixSocket> {
  const options = { maxHeaderSize: 8_192, requireHostHeader: false };
  const server = createHttpServer(options, log, (request, response) => answer(inbox, request, response));
  server.on("clientError", (_error, socket) => socket.destroy());
  return await listenOnSocket(path, { mode: 0o660, mostConnections }, (socket) => {
    server.emit("connection", socket);
    socket.resume();
  });
}

async function answer(inbox: Inbox, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === "GET" && request.url === "/waiting") {
    const waiting = { waiting: inbox.countWaiting(), sinceMs: inbox.waitingSinceMs() };
    response.writeHead(200, { connection: "close" }).end(JSON.stringify(waiting));
    return;
  }
  const asked = request.method === "POST" && request.url === "/take" ? await readTake(request) : null;
  if (asked === null) {
    response.writeHead(404).end();
    return;
  }
  const over = new AbortController();
  const waitMs = asked.syncedSeq < asked.recordedSeq ? unsyncedWaitMs : takeWaitMs;
  const timer = setTimeout(() => over.abort(), waitMs);
  response.on("close", () => {
    clearTimeout(timer);
    over.abort();
  });
  const body = JSON.stringify(await inbox.take(asked, over.signal));
  response.writeHead(200, { "content-type": "application/json", connection: "close" }).end(body);
}

/** It comes from a process with more rights than this one, so only its size is bounded. */
async function readTake(request: IncomingMessage): Promise<TakeRequest | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestRequestBytes) return null;
    chunks.push(chunk);
  }
  return JSON.parse(Buffer.concat(chunks).toString("utf8")) as TakeRequest;
}
