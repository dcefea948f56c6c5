import { readFileSync } from "node:fs";
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from "node:http";
import { answerAndClose, problemAnswer } from "./answer.ts";
import { answerBrokenRequests } from "./broken-request.ts";
import { trackLatestRequests } from "./latest-request.ts";
import { type MakeRoomOptions, makeRoom } from "./make-room.ts";
import { declaredBytes, maxHeaders, tooLarge } from "./request-head.ts";

/**
 * Limits on what a connection may cost. They are given to the constructor, which refuses values that contradict each
 * other; and they are checked every second, because Node's default of 30 s would make each of them 30 s long.
 */
export const serverOptions: ServerOptions = {
  headersTimeout: 5_000,
  // GitHub and GitLab hang up after 10 s: what comes later is of no use to anybody.
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  // Longer than the time for which a proxy keeps an idle connection (Caddy: 2 min): else the two race, and a push is lost.
  keepAliveTimeout: 125_000,
  maxHeaderSize: 16_384,
  // Node would answer without a word of why; request-head.ts looks for it instead.
  requireHostHeader: false,
  // What a body that waits for its turn may have in memory before it is no longer read, in bytes.
  highWaterMark: 16_384,
  noDelay: true,
};

const idleSocketMs = 15_000;
/** Each costs some 15 KiB even if it sends nothing. */
const mostConnections = 2_048;
/** File descriptors that are kept for the database, the log and the deploy script. */
const reservedDescriptors = 128;

export interface HardeningOptions {
  readonly bodyLimitBytes: number;
  /** Told at most once a minute that connections are near their limit. */
  readonly onCrowded: MakeRoomOptions["report"];
}

/** Adds to `server` what Node leaves open: a cap on connections, answers to broken requests, Expect. */
export function hardenServer(server: Server, { bodyLimitBytes, onCrowded }: HardeningOptions): Server {
  server.maxHeadersCount = maxHeaders;
  server.maxConnections = Math.max(64, Math.min(mostConnections, openFilesLimit() - reservedDescriptors));
  server.timeout = idleSocketMs;
  const latestOf = trackLatestRequests(server);
  answerBrokenRequests(server, latestOf);
  makeRoom(server, { latestOf, report: onCrowded });
  server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    if (declaredBytes(request) > bodyLimitBytes) {
      answerAndClose(response, problemAnswer(tooLarge(bodyLimitBytes).problem));
      return;
    }
    response.writeContinue();
    server.emit("request", request, response);
  });
  server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
    const detail = "The only expectation that can be met is 100-continue.";
    answerAndClose(response, problemAnswer({ code: "expectation_failed", detail }));
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
