import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Log } from "../log.ts";
import { createHttpServer } from "../platform/http-server/server.ts";
import { answerCall } from "./answer.ts";
import type { ControlReply, ControlSources } from "./route.ts";

/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;

/**
 * The API behind the control socket: HTTP/1.1 and JSON, one request per connection. It is not public: it and the
 * commands come from one release. The stable interface for programs is what the commands print with --json.
 */
export function createControlServer(sources: ControlSources): Server {
  return serveCalls(sources.log, (request) => answerCall(request, sources));
}

/** Answers one request per connection. */
export function serveCalls(log: Log, answer: (request: IncomingMessage) => Promise<ControlReply>): Server {
  const options = { maxHeaderSize: 8_192, requireHostHeader: false };
  const server = createHttpServer(options, log, async (request, response) =>
    sendReply(request, response, await answer(request)),
  );
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

async function sendReply(
  request: IncomingMessage,
  response: ServerResponse,
  reply: ControlReply,
): Promise<void> {
  response.setHeader("connection", "close");
  if (reply.kind === "json") {
    const body = JSON.stringify(reply.value);
    const length = Buffer.byteLength(body);
    response.writeHead(reply.status, { "content-type": "application/json", "content-length": length });
    response.end(body);
    return;
  }
  // A stream of events has no time-out: a script may be silent for long.
  request.socket.setTimeout(0);
  response.writeHead(200, { "content-type": reply.type });
  response.flushHeaders();
  await reply.write(response);
}
