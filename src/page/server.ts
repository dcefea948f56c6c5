import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { BlockList } from "node:net";
import { readCall, visitorCalls } from "../control/calls.ts";
import type { Log } from "../log.ts";
import { clientAddress } from "../platform/client-address.ts";
import { problemAnswer, type Refusal, sendAnswer } from "../platform/http-server/answer.ts";
import { hardenServer, serverOptions } from "../platform/http-server/hardening.ts";
import { checkHead, declaredBytes } from "../platform/http-server/request-head.ts";
import { createHttpServer } from "../platform/http-server/server.ts";
import { type PageAnswer, problemPage, sendPage } from "./answer.ts";
import type { Api, ApiRoute } from "./api/route.ts";
import { apiRoutes } from "./api/routes.ts";
import { findAsset } from "./assets.ts";
import { readSession } from "./cookie.ts";
import { takeForm } from "./forms.ts";
import { commandsPath, passOn } from "./pass-on.ts";
import type { Refused, RunClient, Visit } from "./run-client.ts";
import type { PageSettings } from "./settings.ts";
import { showScreen } from "./site.ts";
import { findViewer } from "./visitor.ts";

const longestBodyBytes = 16 * 1024;
const tooLarge: Refusal = {
  code: "payload_too_large",
  detail: "The page takes bodies up to 16 KiB.",
  closing: "refused",
};

/** A browser that wakes up tries each connection that it had, and of those that died in its sleep it learns after seconds. */
const keepAliveTimeout = 5_000;

/** Requests of a visitor at the same time, most of which are open pages that wait for events. */
const mostOfVisitor = 256;
const tooMany: Refused = {
  ...{ kind: "refused", status: 429 },
  detail: `This session or token has ${mostOfVisitor} requests open. Close some of them.`,
};

/** The HTTP server of the page. It does not listen yet. */
export function createPage(settings: PageSettings, api: Api, log: Log): Server {
  const enter = createPlaces();
  const server = createHttpServer({ ...serverOptions, keepAliveTimeout }, log, async (request, response) => {
    const refusal = checkHead(request) ?? (declaredBytes(request) > longestBodyBytes ? tooLarge : null);
    if (refusal) return sendAnswer(response, problemAnswer(refusal));
    const visit = visitOf(request, settings);
    const hasPlace = enter(visit, response);
    await sendPage(response, hasPlace ? await answer(request, visit, settings, api) : problemPage(tooMany));
  });
  return hardenServer(server, { limitBytes: longestBodyBytes, tooLarge }, ({ limit, closed, refused }) =>
    log.warn({ event: "connections.crowded", limit, closed, refused }, "The page has many connections"),
  );
}

/** Counts the requests of each visitor, of whom nobody may take all connections of the page. */
function createPlaces() {
  const counts = new Map<string, number>();
  return ({ credential }: Visit, response: ServerResponse): boolean => {
    if (credential === null) return true;
    const count = (counts.get(credential) ?? 0) + 1;
    if (count > mostOfVisitor) return false;
    counts.set(credential, count);
    response.once("close", () => {
      const left = (counts.get(credential) ?? 1) - 1;
      if (left === 0) counts.delete(credential);
      else counts.set(credential, left);
    });
    return true;
  };
}

async function answer(
  request: IncomingMessage,
  visit: Visit,
  settings: PageSettings,
  api: Api,
): Promise<PageAnswer> {
  const address = readAddress(request.url);
  if (address === null) return problemPage({ status: 400, detail: "This is no path." });
  const { pathname, searchParams: query } = address;
  if (pathname === "/health")
    return { kind: "body", status: 200, type: "application/json", body: '{"status":"ok"}' };
  // Another site's name that leads here must not read anything with a visitor's browser (DNS rebinding).
  if (request.headers.host !== settings.url.host)
    return problemPage({ status: 421, detail: `The page is at ${settings.url.origin}.` });
  if (pathname.startsWith("/api/")) return await answerProgram(request, visit, api, pathname, query);
  const { run } = api;
  if (request.method === "GET" && pathname === "/metrics")
    return await answerMetrics(run, fromProxy(request, visit));
  if (request.method === "GET")
    return findAsset(pathname) ?? (await showScreen({ run, visit, path: pathname, query }));
  if (request.method !== "POST")
    return problemPage({ status: 405, detail: "The page has GET and POST only." });
  const form = { run, visit, path: pathname, headers: request.headers, settings };
  const readFields = async () => new URLSearchParams((await readBody(request)) ?? "");
  return await takeForm(form, readFields);
}

/** An address counts as a right there, so that of a proxy which is not trusted is not the visitor's. */
function fromProxy({ headers, socket }: IncomingMessage, visit: Visit): Visit {
  const isProxy = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
  const own = clientAddress({ headers: {}, socket } as IncomingMessage, new BlockList());
  return isProxy && visit.address === own ? { ...visit, address: "" } : visit;
}

/** For Prometheus, which shows a token or asks from a network that may. https://prometheus.io/docs/instrumenting/exposition_formats/ */
async function answerMetrics(run: RunClient, visit: Visit): Promise<PageAnswer> {
  const answer = await run.call(visit, "GET", "/metrics");
  if (answer.kind === "refused") return problemPage(answer);
  const { text } = answer.value as { readonly text: string };
  return { kind: "body", status: 200, type: "text/plain; version=0.0.4", body: text };
}

/** A path that begins with two slashes would be read as another host. */
function readAddress(path = "/"): URL | null {
  return path.startsWith("/") && URL.canParse(`http://page${path}`) ? new URL(`http://page${path}`) : null;
}

async function answerProgram(
  request: IncomingMessage,
  visit: Visit,
  api: Api,
  path: string,
  query: URLSearchParams,
): Promise<PageAnswer> {
  if (path.startsWith(`${commandsPath}/`)) return await answerCommand(request, visit, api.run);
  const found = findRoute(request.method ?? "", path);
  if (found === null) return problemPage({ status: 404, detail: "Nothing is here. See /api/openapi.json." });
  const body = request.method === "POST" ? await readKnownBody(request, visit, api.run) : { value: {} };
  if ("kind" in body) return problemPage(body);
  return await found.route.handle(api, {
    ...{ visit, query, body: { ...body.value }, headers: request.headers },
    parameters: found.parameters,
  });
}

/** Passes on what a command with --server asks, if it is a call of a visitor. */
async function answerCommand(request: IncomingMessage, visit: Visit, run: RunClient): Promise<PageAnswer> {
  const { method = "", url = "" } = request;
  const call = readCall(method, url.slice(commandsPath.length));
  if (!visitorCalls.has(call.key))
    return problemPage({ status: 404, detail: "This Hotpush does not know this request of a command." });
  if (method !== "POST") return await passOn(run, visit, call);
  const body = await readKnownBody(request, visit, run);
  return "kind" in body ? problemPage(body) : await passOn(run, visit, call, body.value);
}

/** The body of a visitor that `run` knows. Nobody else's is read: it could take long to come. */
async function readKnownBody(
  request: IncomingMessage,
  visit: Visit,
  run: RunClient,
): Promise<{ readonly value: object } | Refused> {
  const known = await findViewer(run, visit);
  if (known.kind === "refused") return known;
  const value = parseObject(await readBody(request));
  const detail = "The body is not a JSON object, or is larger than 16 KiB.";
  return value === null ? { kind: "refused", status: 400, detail } : { value };
}

const patterns = Object.entries(apiRoutes).map(([key, route]) => {
  const [method = "", path = ""] = key.split(" ");
  // The number of a deployment, or the name of a project: nothing that could change the path on the other side.
  const source = path
    .replace("{id}", "(?<id>\\d{1,15})")
    .replace("{project}", "(?<project>[a-z0-9][a-z0-9-]{0,38})");
  return { method, pattern: new RegExp(`^${source}$`), route };
});

function findRoute(
  method: string,
  path: string,
): { readonly route: ApiRoute; readonly parameters: Readonly<Record<string, string>> } | null {
  for (const one of patterns) {
    const match = one.method === method ? one.pattern.exec(path) : null;
    if (match) return { route: one.route, parameters: { ...match.groups } };
  }
  return null;
}

const longestAgent = 200;

/** A session counts for what changes nothing, and for the page's own forms, which prove that they are. */
function visitOf(request: IncomingMessage, settings: PageSettings): Visit {
  const { authorization, cookie, "user-agent": agent = "" } = request.headers;
  const [, token = null] = /^Bearer (\S{1,100})$/i.exec(authorization ?? "") ?? [];
  const isCall = request.method !== "GET" && request.url?.startsWith("/api/");
  const session = isCall ? null : readSession(cookie, settings);
  return {
    credential: token ?? session,
    address: clientAddress(request, settings.trustedProxies) ?? "",
    agent: agent.slice(0, longestAgent).replaceAll(/[^\x20-\x7e]/g, "?"),
  };
}

/** @returns null if it is too long */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestBodyBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseObject(text: string | null): Readonly<Record<string, unknown>> | null {
  if (text === "" || text === null) return text === "" ? {} : null;
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : null;
  } catch {
    return null;
  }
}
