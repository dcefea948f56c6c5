import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "../platform/http-server.ts";
import { ProblemError } from "../problems.ts";
import type { ControlContext } from "./context.ts";
import { type Reply, refusal } from "./reply.ts";
import { readRequestBody } from "./request-body.ts";
import { findRoute } from "./routes.ts";

/** A command asks at once and reads at once. */
const idleSocketMs = 30_000;

/**
 * What answers behind the operator's door: HTTP/1.1 and JSON, one request a connection. It is not public: the
 * commands and this come from one release, and what programs can rely on is what the commands print with --json.
 */
export function createControlServer(context: ControlContext): Server {
  const server = createServer({ maxHeaderSize: 8_192, requireHostHeader: false }, (request, response) => {
    response.on("error", () => response.destroy());
    void decide(request, context).then((reply) => conclude(request, response, reply));
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

async function decide(request: IncomingMessage, context: ControlContext): Promise<Reply> {
  try {
    const url = new URL(request.url ?? "/", "http://control");
    const route = findRoute(request.method ?? "", url.pathname);
    if (route === null)
      return refusal(404, "This Hotpush does not know what was asked for. Are both of one version?");
    const body = await readRequestBody(request);
    if (body === null) return refusal(400, "What was asked for is not JSON, or too much of it.");
    return await route.answer(context, { id: route.id, query: url.searchParams, body });
  } catch (error) {
    if (error instanceof ProblemError) return refusal(409, error.message);
    context.log.error(
      { event: "control.failed", err: error },
      "A command failed because of a fault in Hotpush",
    );
    return refusal(500, "A fault in Hotpush kept it from answering. The log of the service says more.");
  }
}

function conclude(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  response.setHeader("connection", "close");
  if (reply.kind === "json") {
    const body = JSON.stringify(reply.value);
    response.writeHead(reply.status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(body),
    });
    response.end(body);
    return;
  }
  // Who follows a deployment may be told nothing for as long as its script is silent.
  request.socket.setTimeout(0);
  response.writeHead(200, { "content-type": reply.type });
  response.flushHeaders();
  reply.write(response);
}
