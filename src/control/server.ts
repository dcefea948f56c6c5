import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "../platform/http.ts";
import { ProblemError } from "../problems.ts";
import { findContext, mustNameProject } from "./contexts.ts";
import { followDeployment } from "./follow.ts";
import { showDeployment, showHistory } from "./history.ts";
import { holdDeployments } from "./hold.ts";
import { importHistory } from "./import.ts";
import { showLog } from "./log.ts";
import { pauseProject, resumeProject } from "./pause.ts";
import { showProjects } from "./projects.ts";
import { cancelDeployment, deployNow, requestRollback } from "./requests.ts";
import {
  type ControlReply,
  type ControlRequest,
  type ControlSources,
  type Route,
  refusal,
  type WholeRoute,
} from "./route.ts";
import { showHealth, showStatus, showWholeStatus } from "./status.ts";

/** `{id}` is a number, or `latest`. */
const routes: Readonly<Record<string, Route>> = {
  "GET /status": showStatus,
  "GET /deployments": showHistory,
  "GET /deployments/{id}": showDeployment,
  "GET /deployments/{id}/log": showLog,
  "GET /deployments/{id}/events": followDeployment,
  "POST /deployments": deployNow,
  "POST /deployments/{id}/cancel": cancelDeployment,
  "POST /rollback": requestRollback,
  "POST /pause": pauseProject,
  "POST /resume": resumeProject,
};

/** What a request that names no project gets if there are several. */
const wholeRoutes: Readonly<Record<string, WholeRoute>> = {
  "GET /projects": showProjects,
  "GET /status": showWholeStatus,
  "GET /deployments": showHistory,
  "GET /health": showHealth,
  "POST /hold": holdDeployments,
  "POST /import": importHistory,
};

/** A command sends its request at once and reads the answer at once. */
const idleSocketMs = 30_000;
const longestBodyBytes = 16 * 1024;

/**
 * The API behind the control socket: HTTP/1.1 and JSON, one request per connection. It is not public: it and the
 * commands come from one release. The stable interface for programs is what the commands print with --json.
 */
export function createControlServer(sources: ControlSources): Server {
  const server = createServer({ maxHeaderSize: 8_192, requireHostHeader: false }, (request, response) => {
    response.on("error", () => response.destroy());
    void answer(request, sources).then((reply) => sendReply(request, response, reply));
  });
  server.timeout = idleSocketMs;
  server.on("clientError", (_error, socket) => socket.destroy());
  return server;
}

async function answer(request: IncomingMessage, sources: ControlSources): Promise<ControlReply> {
  try {
    const { pathname, searchParams: query } = new URL(request.url ?? "/", "http://control");
    const found = findRoute(request.method ?? "", pathname);
    if (!found) return refusal(404, "This Hotpush does not know this request. Are both of the same version?");
    const body = await readRequestBody(request);
    if (body === null) return refusal(400, "The request body is not a JSON object, or is too large.");
    return await found(sources, query, body);
  } catch (error) {
    if (error instanceof ProblemError) return refusal(409, error.message);
    const text = "A command failed because of a fault in Hotpush";
    sources.log.error({ event: "control.failed", err: error }, text);
    return refusal(500, "Hotpush could not answer because of an internal fault. See the log of the service.");
  }
}

type Answerer = (
  sources: ControlSources,
  query: URLSearchParams,
  body: ControlRequest["body"],
) => Promise<ControlReply>;

function findRoute(method: string, path: string): Answerer | null {
  const [, word] = /^\/deployments\/(\d{1,15}|latest)(?=\/|$)/.exec(path) ?? [];
  const key = `${method} ${word === undefined ? path : path.replace(word, "{id}")}`;
  const [route, wholeRoute] = [routes[key], wholeRoutes[key]];
  if (!route && !wholeRoute) return null;
  return async (sources, query, body) => {
    const id = word === undefined || word === "latest" ? null : Number(word);
    const context = await findContext(sources, { id, query });
    if (context !== null && "kind" in context) return context;
    if (context !== null && route) return route(context, { id, query, body });
    return wholeRoute ? wholeRoute(sources, { id, query, body }) : mustNameProject(sources);
  };
}

/** The JSON object in the body, `{}` if the body is empty, null if it is neither. */
async function readRequestBody(request: IncomingMessage): Promise<ControlRequest["body"] | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestBodyBytes) return null;
    chunks.push(chunk);
  }
  if (bytes === 0) return {};
  try {
    const value = JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
    return typeof value === "object" && value !== null ? (value as ControlRequest["body"]) : null;
  } catch {
    return null;
  }
}

function sendReply(request: IncomingMessage, response: ServerResponse, reply: ControlReply): void {
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
  reply.write(response);
}
