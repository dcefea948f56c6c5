import { readFileSync } from "node:fs";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { problemAnswer, type Refusal, sendAnswer, writeAndClose } from "./answer.ts";
import { type Crowding, isAnswered, type LatestRequest, limitConnections } from "./connections.ts";
import { declaredBytes, maxHeaders } from "./request-head.ts";

/**
 * Limits on what a connection may cost. They are given to the constructor, which refuses values that contradict each
 * other. They are checked every second: Node's default of 30 s would make each of them 30 s longer.
 */
export const serverOptions: ServerOptions = {
  headersTimeout: 5_000,
  // GitHub and GitLab hang up after 10 s: what comes later is of no use to anybody.
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  // Longer than a proxy keeps an idle connection (Caddy: 2 min): else the two race, and a push is lost.
  keepAliveTimeout: 125_000,
  maxHeaderSize: 16_384,
  // Node would answer without a reason; request-head.ts checks it instead.
  requireHostHeader: false,
  // How many bytes of a body that waits for its turn may be in memory before it is no longer read.
  highWaterMark: 16_384,
  noDelay: true,
};

const idleSocketMs = 15_000;
/** Each costs some 15 KiB even if it sends nothing. */
const mostConnections = 2_048;
/** File descriptors that are kept for the database, the log, the deploy script and other servers. */
const reservedDescriptors = 128;

/**
 * Adds to `server` what Node leaves open: a cap on connections, answers to broken requests, Expect.
 *
 * @param body what `Expect: 100-continue` is not granted for
 * @param onCrowded called at most once a minute while connections are near their limit
 */
export function hardenServer(
  server: Server,
  body: { readonly limitBytes: number; readonly tooLarge: Refusal },
  onCrowded: (crowding: Crowding) => void,
): Server {
  server.maxHeadersCount = maxHeaders;
  server.maxConnections = Math.max(64, Math.min(mostConnections, openFilesLimit() - reservedDescriptors));
  server.timeout = idleSocketMs;
  answerBrokenRequests(server, limitConnections(server, onCrowded));
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (declaredBytes(request) > body.limitBytes) {
      sendAnswer(response, problemAnswer(body.tooLarge));
      return;
    }
    response.writeContinue();
    server.emit("request", request, response);
  });
  server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    const detail = "The only expectation that can be met is 100-continue.";
    sendAnswer(response, problemAnswer({ code: "expectation_failed", detail, closing: "refused" }));
  });
  return server;
}

/** How many files this process may have open; Node raises its soft limit to the hard one at start. */
function openFilesLimit(): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return Number(line?.[1] ?? mostConnections);
  } catch {
    return mostConnections;
  }
}

/**
 * Answers requests that Node's parser gave up on: broken, too large or too slow. Node has no response for them; but the
 * requests that came whole before them on the same connection are answered first, or a sender would take the refusal for
 * the answer to a push that was recorded.
 */
function answerBrokenRequests(server: Server, latestOf: (socket: Socket) => LatestRequest | undefined): void {
  const broken = new WeakSet<Socket>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    // Everything after a broken request is broken too, and reported again.
    if (broken.has(socket)) return;
    broken.add(socket);
    const answer = problemAnswer({ ...(brokenRequests[error.code ?? ""] ?? notHttp), closing: "broken" });
    const latest = latestOf(socket);
    if (!latest || isAnswered(latest)) writeAndClose(socket, answer);
    else if (latest.request.complete) latest.response.once("close", () => writeAndClose(socket, answer));
    else if (latest.response.writableEnded) socket.destroySoon();
    else sendAnswer(latest.response, answer);
  });
}

/** By the code of Node's parser. */
const brokenRequests: Readonly<Record<string, Refusal>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    code: "request_timeout",
    detail: "The headers did not arrive within 5 s, or the body within 10 s.",
  },
  HPE_HEADER_OVERFLOW: {
    code: "headers_too_large",
    detail: `The headers are larger than 16 KiB, or there are ${maxHeaders} or more.`,
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    code: "payload_too_large",
    detail: "The extensions of a chunk are larger than 16 KiB.",
  },
};
const notHttp: Refusal = {
  code: "malformed_request",
  detail: "The request could not be read as HTTP/1.1.",
};
